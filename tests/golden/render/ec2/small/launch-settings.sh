# What launch.sh reads.
# shellcheck shell=bash disable=SC2034
NAME=tag-api
REGION=eu-central-1
MACHINES=1
TOGETHER=''
ROOT_GIB=110
image=''
IMAGE_PARAMETER=/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64
PORTS=8000-8000
KEEPS=''
NEEDS_ROLE=''
TAGS='[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "tag-api"}, {"Key": "chipwise-deployment", "Value": "tag-api"}, {"Key": "team", "Value": "shop"}, {"Key": "chipwise-first-rank", "Value": "0"}]}, {"ResourceType": "volume", "Tags": [{"Key": "Name", "Value": "tag-api"}, {"Key": "chipwise-deployment", "Value": "tag-api"}, {"Key": "team", "Value": "shop"}, {"Key": "chipwise-first-rank", "Value": "0"}]}]'
GROUP_TAGS='[{"ResourceType": "security-group", "Tags": [{"Key": "Name", "Value": "tag-api"}, {"Key": "chipwise-deployment", "Value": "tag-api"}, {"Key": "team", "Value": "shop"}]}]'
ATTEMPTS=('c7i.large on-demand 0 0')
