# What launch.sh reads.
# shellcheck shell=bash disable=SC2034
NAME=llama-8b-legal
REGION=eu-north-1
MACHINES=2
TOGETHER=yes
ROOT_GIB=100
image=''
IMAGE_PARAMETER=/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id
PORTS=''
KEEPS='/checkpoints and the program'"'"'s log'
NEEDS_ROLE=yes
TAGS='[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "llama-8b-legal"}, {"Key": "chipwise-deployment", "Value": "llama-8b-legal"}, {"Key": "owner", "Value": "mara.lindqvist"}, {"Key": "team", "Value": "language"}, {"Key": "project", "Value": "legal-assistant"}, {"Key": "cost_center", "Value": "4711"}, {"Key": "chipwise-first-rank", "Value": "0"}]}, {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "llama-8b-legal"}, {"Key": "chipwise-deployment", "Value": "llama-8b-legal"}, {"Key": "owner", "Value": "mara.lindqvist"}, {"Key": "team", "Value": "language"}, {"Key": "project", "Value": "legal-assistant"}, {"Key": "cost_center", "Value": "4711"}, {"Key": "chipwise-first-rank", "Value": "0"}]}]'
GROUP_TAGS='[{"ResourceType": "security-group", "Tags": [{"Key": "Name", "Value": "llama-8b-legal"}, {"Key": "chipwise-deployment", "Value": "llama-8b-legal"}, {"Key": "owner", "Value": "mara.lindqvist"}, {"Key": "team", "Value": "language"}, {"Key": "project", "Value": "legal-assistant"}, {"Key": "cost_center", "Value": "4711"}]}]'
ATTEMPTS=(
  'p5.48xlarge spot 32 0' 'p5e.48xlarge spot 32 0' 'p5en.48xlarge spot 16 0' 'p5.48xlarge on-demand 32 0'
  'p5e.48xlarge on-demand 32 0' 'p5en.48xlarge on-demand 16 0'
)
