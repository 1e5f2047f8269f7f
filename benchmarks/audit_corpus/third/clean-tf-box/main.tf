resource "aws_instance" "serve" {
  ami                    = data.aws_ami.dlami.id
  instance_type          = "g6e.2xlarge"
  vpc_security_group_ids = [aws_security_group.serve.id]
  iam_instance_profile   = aws_iam_instance_profile.serve.name

  metadata_options {
    http_tokens = "required"
  }

  root_block_device {
    volume_size = 200
    volume_type = "gp3"
    encrypted   = true
  }
}

resource "aws_security_group" "serve" {
  name   = "serve"
  vpc_id = var.vpc_id

  ingress {
    description = "API"
    from_port   = 8000
    to_port     = 8000
    protocol    = "tcp"
    cidr_blocks = ["10.0.0.0/8"]
  }
}

resource "aws_iam_role_policy" "serve" {
  role = aws_iam_role.serve.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["s3:GetObject"]
      Resource = "arn:aws:s3:::acme-weights/*"
    }]
  })
}

variable "vpc_id" { type = string }
