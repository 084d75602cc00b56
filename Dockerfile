# Training with GPUs:
#   docker build --target=train -t rat_tf .
#   (with --build-arg=TF=modern for the modern stack: docs/stacks.md compares the two)
#   docker run --gpus=all -v "$PWD/runs:/rat_tf/runs" rat_tf --flagfile=configs/svhn1000.cfg
# A server with one exported model in it (export.serve prints how to serve without building this):
#   docker build --target=serve --build-arg=MODEL=models/svhn -t svhn .
#   (with --build-arg=SERVING=2.21.0 for a model of TF=modern: its assets/tf_serving.txt says which)
#   docker run -p 127.0.0.1:8500:8500 -p 127.0.0.1:8501:8501 svhn

ARG TF=2.15
ARG SERVING=2.15.1

FROM tensorflow/tensorflow:2.15.0-gpu AS tensorflow-2.15
WORKDIR /src
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt

# CUDA comes with packages of PyPI: only the GPU's driver is the host's.
FROM python:3.12-slim AS tensorflow-modern
WORKDIR /src
COPY requirements-modern.txt .
RUN pip install --no-cache-dir -r requirements-modern.txt "tensorflow[and-cuda]"

FROM tensorflow-${TF} AS train
COPY LICENSE README.md pyproject.toml ./
COPY configs configs
COPY export export
COPY rat_tf rat_tf
RUN pip install --no-cache-dir --no-deps --no-build-isolation .
WORKDIR /rat_tf
RUN useradd --create-home rat && mkdir -p runs models && chown rat runs models
USER rat
ENTRYPOINT ["python", "-m", "rat_tf.train"]

FROM tensorflow/serving:${SERVING} AS serve
ARG MODEL
COPY ${MODEL} /models/model
RUN useradd --system serving
USER serving
# The image's own entry point serves /models/model on 8500 (gRPC) and 8501 (REST).
EXPOSE 8500 8501
