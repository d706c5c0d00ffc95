"""onnxruntime-genai: its logs, its settings under the rules that it runs, and how it is started."""
