terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = "~> 5.80" }
  }
}

data "aws_ami" "ubuntu" {
  most_recent = true
  owners      = ["099720109477"]
  filter {
    name   = "name"
    values = ["ubuntu/images/hvm-ssd/ubuntu-jammy-22.04-amd64-server-*"]
  }
}

resource "aws_security_group" "notebook" {
  name   = "notebook"
  vpc_id = var.vpc_id

  ingress {
    description = "jupyter"
    from_port   = 8888
    to_port     = 8888
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]  #! open-network
  }

  egress {
    from_port   = 0
    to_port     = 0
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_instance" "notebook" {  #! open-secrets, open-secrets
  ami                         = data.aws_ami.ubuntu.id  #! ami-without-driver
  instance_type               = "p3.8xlarge"
  subnet_id                   = var.subnet_id
  associate_public_ip_address = true
  vpc_security_group_ids      = [aws_security_group.notebook.id]
  key_name                    = "research"

  metadata_options {
    http_endpoint = "enabled"
    http_tokens   = "optional"  #! metadata-v1
  }

  root_block_device {
    volume_size = 20  #! disk-too-small
    encrypted   = false  #! unencrypted-disk
  }

  user_data = <<-EOF
    #!/bin/bash
    export AWS_ACCESS_KEY_ID=AKIAQ7RZN3W5KXT2MBVD
    export AWS_SECRET_ACCESS_KEY=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  #! plain-secret
    pip install torch jupyterlab  #! unpinned-packages
    jupyter lab --ip 0.0.0.0 --NotebookApp.token='' --allow-root &
  EOF
}

variable "vpc_id" { type = string }
variable "subnet_id" { type = string }
