# What launch.sh reads.
# shellcheck shell=bash disable=SC2034
NAME=chat-api
REGION=eu-central-1
MACHINES=2
TOGETHER=''
ROOT_GIB=100
image=vllm/vllm-openai:v0.32.0
IMAGE_PARAMETER=/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id
PORTS=8000-8000
KEEPS=''
NEEDS_ROLE=yes
TAGS='[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "chat-api"}, {"Key": "chipwise-deployment", "Value": "chat-api"}, {"Key": "owner", "Value": "priya.raman"}, {"Key": "team", "Value": "assistants"}, {"Key": "project", "Value": "shop-chat"}, {"Key": "chipwise-first-rank", "Value": "0"}]}, {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "chat-api"}, {"Key": "chipwise-deployment", "Value": "chat-api"}, {"Key": "owner", "Value": "priya.raman"}, {"Key": "team", "Value": "assistants"}, {"Key": "project", "Value": "shop-chat"}, {"Key": "chipwise-first-rank", "Value": "0"}]}]'
GROUP_TAGS='[{"ResourceType": "security-group", "Tags": [{"Key": "Name", "Value": "chat-api"}, {"Key": "chipwise-deployment", "Value": "chat-api"}, {"Key": "owner", "Value": "priya.raman"}, {"Key": "team", "Value": "assistants"}, {"Key": "project", "Value": "shop-chat"}]}]'
ATTEMPTS=('g6e.xlarge on-demand 0 0')
