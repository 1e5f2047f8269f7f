ARG CUDA=12.8.1
FROM nvidia/cuda:${CUDA}-cudnn-devel-ubuntu22.04 AS build
RUN apt-get update && apt-get install -y python3-pip git && rm -rf /var/lib/apt/lists/*
RUN pip3 install flash-attn==2.8.3 deepspeed==0.17.6

FROM nvidia/cuda:12.8.1-cudnn-runtime-ubuntu22.04
COPY --from=build /usr/local/lib/python3.10 /usr/local/lib/python3.10
COPY . /app
WORKDIR /app
USER 10001
ENTRYPOINT ["torchrun", "train.py"]
