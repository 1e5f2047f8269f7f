# wing-cfd: hpc on 4 x hpc7a.96xlarge (aws us-east-2, on-demand). Written by chipwise from the plan.
# Plain EC2 machines that run the container by themselves; the directory eks/ has the same as a node group.
# Expected: 60 h (40 h to 3.75 d), $1,728.00, 95.0 kg CO2e.

locals {
  name = "wing-cfd"
  # Activate them as cost allocation tags, or the bill does not show them.
  tags = {
    Name                = "wing-cfd"
    chipwise-deployment = "wing-cfd"
    team                = "aerodynamics"
  }
  # What start.sh reads.
  settings = {
    IMAGE     = var.image
    NAME      = local.name
    LOG_GROUP = aws_cloudwatch_log_group.this.name
  }
  start = join("\n", concat(
    ["#!/bin/bash"],
    [for name, value in local.settings : "${name}='${replace(value, "'", "'\\''")}'"],
    [file("${path.module}/start.sh")],
  ))
}

# The public image that is kept patched.
data "aws_ssm_parameter" "ami" {
  count = var.ami_id == null ? 1 : 0
  name  = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
}

# The one of the first apply: a newer image must not replace machines because something else has changed.
# To take the newest: terraform apply -replace='terraform_data.ami[0]'
resource "terraform_data" "ami" {
  count = var.ami_id == null ? 1 : 0
  input = nonsensitive(data.aws_ssm_parameter.ami[0].value)

  lifecycle {
    ignore_changes = [input]
  }
}

data "aws_ami" "this" {
  owners = ["amazon", "aws-marketplace", "self"]

  filter {
    name   = "image-id"
    values = [var.ami_id != null ? var.ami_id : terraform_data.ami[0].output]
  }
}

resource "aws_launch_template" "machines" {
  name_prefix   = "${local.name}-"
  image_id      = data.aws_ami.this.id
  instance_type = var.instance_types[0]
  # EC2 takes 16 KiB; packed, long commands fit too.
  user_data                            = base64gzip(local.start)
  ebs_optimized                        = true
  update_default_version               = true
  instance_initiated_shutdown_behavior = "terminate"

  iam_instance_profile {
    arn = aws_iam_instance_profile.machines.arn
  }

  metadata_options {
    http_endpoint = "enabled"
    # IMDSv2 only: a program that fetches any URL must not reach the credentials.
    http_tokens = "required"
    # Not from inside a container with a network of its own.
    http_put_response_hop_limit = 1
    # The script reads there which machine it is.
    instance_metadata_tags = "enabled"
  }

  block_device_mappings {
    device_name = data.aws_ami.this.root_device_name

    ebs {
      volume_type = "gp3"
      # GiB: system and image, and what the program keeps beside it.
      volume_size           = 100
      throughput            = 500
      iops                  = 3000
      encrypted             = true
      delete_on_termination = true
    }
  }

  monitoring {
    enabled = true
  }

  # EFA on 2 cards; the first carries ordinary traffic too.
  dynamic "network_interfaces" {
    for_each = range(2)

    content {
      network_card_index    = network_interfaces.value
      device_index          = network_interfaces.value == 0 ? 0 : 1
      interface_type        = network_interfaces.value == 0 ? "efa" : "efa-only"
      security_groups       = [aws_security_group.machines.id]
      subnet_id             = var.subnet_ids[0]
      delete_on_termination = true
    }
  }

  placement {
    group_name = aws_placement_group.close.name
  }

  # Default tags of the provider do not reach what a template starts.
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

  lifecycle {
    create_before_destroy = true
  }
}

# Close together in one zone: the machines exchange data at every step.
resource "aws_placement_group" "close" {
  name     = local.name
  strategy = "cluster"
}

# A machine ends itself when its work is done. The next `terraform apply` would then start it again: `terraform destroy`
# when you have the results.
resource "aws_instance" "machines" {
  # The work is split for this number.
  count = 4

  launch_template {
    id      = aws_launch_template.machines.id
    version = aws_launch_template.machines.latest_version
  }

  # Machine 0 is where the others meet.
  tags = {
    chipwise-first-rank = count.index
  }
  depends_on = [aws_iam_role_policy.machines]
}
