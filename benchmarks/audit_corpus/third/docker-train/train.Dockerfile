ARG CUDA=12.8.1
FROM nvidia/cuda:${CUDA}-cudnn-devel-ubuntu22.04 AS build
RUN apt-get update && apt-get install -y python3-pip git && rm -rf /var/lib/apt/lists/*
RUN pip3 install flash-attn deepspeed #! unpinned-packages

FROM nvidia/cuda:12.8.1-cudnn-runtime-ubuntu22.04
COPY --from=build /usr/local/lib/python3.10 /usr/local/lib/python3.10
RUN git clone https://oauth2:glpat-Xy7kQ2mVtR9sLpWb4NdZ@gitlab.acme.dev/ml/train.git /app #! plain-secret, unpinned-clone
WORKDIR /app
ENTRYPOINT ["torchrun", "train.py"] #! root
