# What the machines may do: no more than their script does.

data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["ec2.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "machines" {
  name_prefix        = "${substr(local.name, 0, 30)}-"
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

resource "aws_iam_instance_profile" "machines" {
  name_prefix = "${substr(local.name, 0, 30)}-"
  role        = aws_iam_role.machines.name
}

data "aws_iam_policy_document" "machines" {
  statement {
    sid       = "Logs"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.this.arn}:*"]
  }

  statement {
    sid       = "Read0List"
    actions   = ["s3:ListBucket"]
    resources = ["arn:${data.aws_partition.current.partition}:s3:::legal-text"]

    condition {
      test     = "StringLike"
      variable = "s3:prefix"
      values   = ["tokens/*"]
    }
  }

  statement {
    sid       = "Read0"
    actions   = ["s3:GetObject"]
    resources = ["arn:${data.aws_partition.current.partition}:s3:::legal-text/tokens/*"]
  }

  statement {
    sid       = "WorkList"
    actions   = ["s3:ListBucket"]
    resources = [aws_s3_bucket.work.arn]
  }

  statement {
    sid       = "Work"
    actions   = ["s3:GetObject", "s3:PutObject"]
    resources = ["${aws_s3_bucket.work.arn}/*"]
  }

  statement {
    sid     = "Secrets"
    actions = ["secretsmanager:GetSecretValue"]
    resources = [
      "arn:${data.aws_partition.current.partition}:secretsmanager:${var.region}:${data.aws_caller_identity.current.account_id}:secret:hub-token-??????",
    ]
  }

  # For an image in ECR. This call knows no narrower resource.
  statement {
    sid       = "SignIn"
    actions   = ["ecr:GetAuthorizationToken"]
    resources = ["*"]
  }

  statement {
    sid     = "Pull"
    actions = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    resources = [
      "arn:${data.aws_partition.current.partition}:ecr:${var.region}:${data.aws_caller_identity.current.account_id}:repository/*",
    ]
  }

  # To find machine 0. This call knows no narrower resource.
  statement {
    sid       = "Meet"
    actions   = ["ec2:DescribeInstances"]
    resources = ["*"]
  }

  statement {
    sid     = "Leave"
    actions = ["autoscaling:TerminateInstanceInAutoScalingGroup"]
    resources = [
      "arn:${data.aws_partition.current.partition}:autoscaling:${var.region}:${data.aws_caller_identity.current.account_id}:autoScalingGroup:*:autoScalingGroupName/${local.name}*",
    ]

    condition {
      test     = "StringEquals"
      variable = "aws:ResourceTag/chipwise-deployment"
      values   = [local.name]
    }
  }
}

resource "aws_iam_role_policy" "machines" {
  name   = "work"
  role   = aws_iam_role.machines.id
  policy = data.aws_iam_policy_document.machines.json
}

resource "aws_iam_role_policy_attachment" "sessions" {
  count      = var.session_manager ? 1 : 0
  role       = aws_iam_role.machines.name
  policy_arn = "arn:${data.aws_partition.current.partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"
}

# The output of the program outlives its machine.
resource "aws_cloudwatch_log_group" "this" {
  name              = "/chipwise/${local.name}"
  retention_in_days = 30
}
