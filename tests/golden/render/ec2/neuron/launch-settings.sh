# What launch.sh reads.
# shellcheck shell=bash disable=SC2034
NAME=neuron-pretrain
REGION=us-east-1
MACHINES=4
TOGETHER=yes
ROOT_GIB=100
image=''
IMAGE_PARAMETER=/aws/service/neuron/dlami/base/amazon-linux-2023/latest/image_id
PORTS=''
KEEPS='/checkpoints and the program'"'"'s log'
NEEDS_ROLE=yes
TAGS='[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "neuron-pretrain"}, {"Key": "chipwise-deployment", "Value": "neuron-pretrain"}, {"Key": "owner", "Value": "mara.lindqvist"}, {"Key": "team", "Value": "language"}, {"Key": "project", "Value": "legal-assistant"}, {"Key": "cost_center", "Value": "4711"}, {"Key": "chipwise-first-rank", "Value": "0"}]}, {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "neuron-pretrain"}, {"Key": "chipwise-deployment", "Value": "neuron-pretrain"}, {"Key": "owner", "Value": "mara.lindqvist"}, {"Key": "team", "Value": "language"}, {"Key": "project", "Value": "legal-assistant"}, {"Key": "cost_center", "Value": "4711"}, {"Key": "chipwise-first-rank", "Value": "0"}]}]'
GROUP_TAGS='[{"ResourceType": "security-group", "Tags": [{"Key": "Name", "Value": "neuron-pretrain"}, {"Key": "chipwise-deployment", "Value": "neuron-pretrain"}, {"Key": "owner", "Value": "mara.lindqvist"}, {"Key": "team", "Value": "language"}, {"Key": "project", "Value": "legal-assistant"}, {"Key": "cost_center", "Value": "4711"}]}]'
ATTEMPTS=('trn1.32xlarge on-demand 8 0')
