# neuron-pretrain: train on 4 x trn1.32xlarge (aws us-east-1, on-demand). Written by chipwise from the plan.
# A node group for the cluster that is there; what runs on it comes from `chipwise render --to kubernetes`.
# Expected: 40 h (35 h to 52 h), $2,481.50, 210.0 kg CO2e.

locals {
  name = "neuron-pretrain"
  tags = {
    Name                = "neuron-pretrain"
    chipwise-deployment = "neuron-pretrain"
    owner               = "mara.lindqvist"
    team                = "language"
    project             = "legal-assistant"
    cost_center         = "4711"
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
  name_prefix = "${local.name}-"
  # EFA locks the memory that it sends from, which a program that is not root may do with this alone. EKS adds its own part.
  user_data              = base64encode(file("${path.module}/nodes.txt"))
  update_default_version = true

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

  # EFA on 8 cards; the first carries ordinary traffic too.
  dynamic "network_interfaces" {
    for_each = range(8)

    content {
      network_card_index    = network_interfaces.value
      device_index          = network_interfaces.value == 0 ? 0 : 1
      interface_type        = network_interfaces.value == 0 ? "efa" : "efa-only"
      security_groups       = [data.aws_eks_cluster.this.vpc_config[0].cluster_security_group_id, aws_security_group.fabric.id]
      delete_on_termination = true
    }
  }

  placement {
    group_name = aws_placement_group.close.name
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

data "aws_iam_policy_document" "pods" {
  statement {
    actions = ["sts:AssumeRole", "sts:TagSession"]

    principals {
      type        = "Service"
      identifiers = ["pods.eks.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "program" {
  name_prefix        = "${substr(local.name, 0, 30)}-"
  assume_role_policy = data.aws_iam_policy_document.pods.json
}

resource "aws_iam_role_policy" "program" {
  role   = aws_iam_role.program.id
  policy = "{\"Version\": \"2012-10-17\", \"Statement\": [{\"Effect\": \"Allow\", \"Action\": [\"s3:ListBucket\"], \"Resource\": [\"arn:aws:s3:::legal-text\"], \"Condition\": {\"StringLike\": {\"s3:prefix\": [\"tokens/*\"]}}}, {\"Effect\": \"Allow\", \"Action\": [\"s3:GetObject\"], \"Resource\": [\"arn:aws:s3:::legal-text/tokens/*\"]}]}"
}

# What the service account of --to kubernetes may do with its buckets; needs the add-on eks-pod-identity-agent.
resource "aws_eks_pod_identity_association" "program" {
  cluster_name    = var.cluster_name
  namespace       = "neuron-pretrain"
  service_account = "neuron-pretrain"
  role_arn        = aws_iam_role.program.arn
}

resource "aws_placement_group" "close" {
  name     = local.name
  strategy = "cluster"
}

resource "aws_security_group" "fabric" {
  name_prefix = "${local.name}-"
  description = "EFA among the machines"
  vpc_id      = data.aws_eks_cluster.this.vpc_config[0].vpc_id

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "fabric" {
  security_group_id            = aws_security_group.fabric.id
  referenced_security_group_id = aws_security_group.fabric.id
  ip_protocol                  = "-1"
  description                  = "Among the machines"
}

resource "aws_vpc_security_group_egress_rule" "fabric" {
  security_group_id            = aws_security_group.fabric.id
  referenced_security_group_id = aws_security_group.fabric.id
  ip_protocol                  = "-1"
  description                  = "Among the machines"
}

resource "aws_eks_node_group" "this" {
  cluster_name           = data.aws_eks_cluster.this.name
  node_group_name_prefix = "${substr(local.name, 0, 36)}-"
  node_role_arn          = aws_iam_role.nodes.arn
  subnet_ids             = var.subnet_ids
  # The node image with the driver of Trainium1 (2.29.0.0 in release v20260714).
  ami_type       = "AL2023_x86_64_NEURON"
  capacity_type  = "ON_DEMAND"
  instance_types = ["trn1.32xlarge"]
  labels = {
    "app.kubernetes.io/managed-by" = "chipwise"
    "chipwise.dev/deployment"      = "neuron-pretrain"
  }

  launch_template {
    id      = aws_launch_template.nodes.id
    version = aws_launch_template.nodes.latest_version
  }

  scaling_config {
    # Nothing is paid for while it does not run: the Cluster Autoscaler takes empty machines away.
    min_size     = 0
    desired_size = 4
    max_size     = 4
  }

  update_config {
    max_unavailable = 1
  }

  node_repair_config {
    enabled = true
  }

  # Pods that need no accelerator stay away from machines that have one.
  taint {
    key    = "aws.amazon.com/neuron"
    value  = "true"
    effect = "NO_SCHEDULE"
  }

  lifecycle {
    # The autoscaler changes it; apply must not.
    ignore_changes        = [scaling_config[0].desired_size]
    create_before_destroy = true
  }

  depends_on = [aws_iam_role_policy_attachment.nodes]
}
