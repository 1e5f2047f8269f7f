# chat-api: serve on 2 x g6e.xlarge (aws eu-central-1, on-demand). Written by chipwise from the plan.
# A node group for the cluster that is there; what runs on it comes from `chipwise render --to kubernetes`.
# Expected: $1,534 and 55 kg CO2e a month.

locals {
  name = "chat-api"
  tags = {
    Name                = "chat-api"
    chipwise-deployment = "chat-api"
    owner               = "priya.raman"
    team                = "assistants"
    project             = "shop-chat"
  }
}

data "aws_partition" "current" {}

data "aws_eks_cluster" "this" {
  name = var.cluster_name
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "nodes" {
  name_prefix        = "${substr(local.name, 0, 30)}-"
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

# What every node needs. Rights of the program belong to its own service account (Pod Identity).
resource "aws_iam_role_policy_attachment" "nodes" {
  for_each   = toset(["AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"])
  role       = aws_iam_role.nodes.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/${each.value}"
}

resource "aws_launch_template" "nodes" {
  name_prefix            = "${local.name}-"
  update_default_version = true
  vpc_security_group_ids = [data.aws_eks_cluster.this.vpc_config[0].cluster_security_group_id]

  metadata_options {
    http_endpoint = "enabled"
    http_tokens   = "required"
    # Pods do not reach the node's credentials.
    http_put_response_hop_limit = 1
  }

  block_device_mappings {
    # Of the AL2023 node images.
    device_name = "/dev/xvda"

    ebs {
      volume_type           = "gp3"
      volume_size           = 200
      throughput            = 500
      iops                  = 3000
      encrypted             = true
      delete_on_termination = true
    }
  }

  tag_specifications {
    resource_type = "instance"
    tags          = local.tags
  }

  tag_specifications {
    resource_type = "volume"
    tags          = local.tags
  }

  tag_specifications {
    resource_type = "network-interface"
    tags          = local.tags
  }
}

resource "aws_eks_node_group" "this" {
  cluster_name           = data.aws_eks_cluster.this.name
  node_group_name_prefix = "${substr(local.name, 0, 36)}-"
  node_role_arn          = aws_iam_role.nodes.arn
  subnet_ids             = var.subnet_ids
  # The node image with the driver of L40S (580.159.03 in release v20260714).
  ami_type       = "AL2023_x86_64_NVIDIA"
  capacity_type  = "ON_DEMAND"
  instance_types = ["g6e.xlarge"]
  labels = {
    "app.kubernetes.io/managed-by" = "chipwise"
    "chipwise.dev/deployment"      = "chat-api"
  }

  launch_template {
    id      = aws_launch_template.nodes.id
    version = aws_launch_template.nodes.latest_version
  }

  scaling_config {
    # Nothing is paid for while it does not run: the Cluster Autoscaler takes empty machines away.
    min_size     = 0
    desired_size = 2
    max_size     = 13
  }

  update_config {
    max_unavailable = 1
  }

  node_repair_config {
    enabled = true
  }

  # Pods that need no accelerator stay away from machines that have one.
  taint {
    key    = "nvidia.com/gpu"
    value  = "present"
    effect = "NO_SCHEDULE"
  }

  lifecycle {
    # The autoscaler changes it; apply must not.
    ignore_changes        = [scaling_config[0].desired_size]
    create_before_destroy = true
  }

  depends_on = [aws_iam_role_policy_attachment.nodes]
}
