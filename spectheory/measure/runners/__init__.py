"""Where the prompts are read: in this process, in worker processes of this machine, on a Dask cluster."""
