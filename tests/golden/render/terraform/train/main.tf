# llama-8b-legal: train on 2 x p5.48xlarge (aws eu-north-1, spot). Written by chipwise from the plan.
# Plain EC2 machines that run the container by themselves; the directory eks/ has the same as a node group.
# Expected: 40 h (35 h to 52 h), $2,481.50, 210.0 kg CO2e.

locals {
  name = "llama-8b-legal"
  # Activate them as cost allocation tags, or the bill does not show them.
  tags = {
    Name                = "llama-8b-legal"
    chipwise-deployment = "llama-8b-legal"
    owner               = "mara.lindqvist"
    team                = "language"
    project             = "legal-assistant"
    cost_center         = "4711"
  }
  # What start.sh reads.
  settings = {
    IMAGE     = var.image
    NAME      = local.name
    LOG_GROUP = aws_cloudwatch_log_group.this.name
    KEEP      = "s3://${aws_s3_bucket.work.id}"
  }
  start = join("\n", concat(
    ["#!/bin/bash"],
    [for name, value in local.settings : "${name}='${replace(value, "'", "'\\''")}'"],
    [file("${path.module}/start.sh")],
  ))
}

# The public image that carries the driver of H100-SXM, Docker and its container toolkit.
data "aws_ssm_parameter" "ami" {
  count = var.ami_id == null ? 1 : 0
  name  = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"
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
      volume_size           = 560
      throughput            = 500
      iops                  = 3000
      encrypted             = true
      delete_on_termination = true
    }
  }

  monitoring {
    enabled = true
  }

  # EFA on 32 cards; the first carries ordinary traffic too.
  dynamic "network_interfaces" {
    for_each = range(32)

    content {
      network_card_index    = network_interfaces.value
      device_index          = network_interfaces.value == 0 ? 0 : 1
      interface_type        = network_interfaces.value == 0 ? "efa" : "efa-only"
      security_groups       = [aws_security_group.machines.id]
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

# One group of one for each machine: who stands in for a lost one keeps its number, and goes on from its checkpoint.
resource "aws_autoscaling_group" "machines" {
  count = 2
  name  = "${local.name}-${count.index}"
  # A machine whose work is done leaves for good.
  min_size            = 0
  max_size            = 1
  desired_capacity    = 1
  vpc_zone_identifier = [var.subnet_ids[0]]
  # Spot may take its time; apply does not wait.
  wait_for_capacity_timeout = "0"

  mixed_instances_policy {
    instances_distribution {
      on_demand_base_capacity                  = 0
      on_demand_percentage_above_base_capacity = var.on_demand_percentage
      spot_allocation_strategy                 = "price-capacity-optimized"
      on_demand_allocation_strategy            = "prioritized"
    }

    launch_template {
      launch_template_specification {
        launch_template_id = aws_launch_template.machines.id
        version            = aws_launch_template.machines.latest_version
      }

      dynamic "override" {
        for_each = var.instance_types

        content {
          instance_type = override.value
        }
      }
    }
  }

  dynamic "tag" {
    for_each = merge(local.tags, { "chipwise-first-rank" = count.index })

    content {
      key                 = tag.key
      value               = tag.value
      propagate_at_launch = true
    }
  }

  lifecycle {
    # The machines change it; apply must not.
    ignore_changes = [desired_capacity]
  }

  depends_on = [aws_iam_role_policy.machines]
}
