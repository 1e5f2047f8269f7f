# What outlives a machine.

# What the program keeps: checkpoints (room for three checkpoints).
resource "aws_s3_bucket" "work" {
  bucket_prefix = "${substr(local.name, 0, 36)}-"
  # A destroy stops here while there is something in it.
  force_destroy = false
}

resource "aws_s3_bucket_public_access_block" "work" {
  bucket                  = aws_s3_bucket.work.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

data "aws_iam_policy_document" "work" {
  statement {
    sid       = "Tls"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [aws_s3_bucket.work.arn, "${aws_s3_bucket.work.arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

# Nobody, whatever their rights, reaches it without TLS.
resource "aws_s3_bucket_policy" "work" {
  bucket     = aws_s3_bucket.work.id
  policy     = data.aws_iam_policy_document.work.json
  depends_on = [aws_s3_bucket_public_access_block.work]
}

resource "aws_s3_bucket_server_side_encryption_configuration" "work" {
  bucket = aws_s3_bucket.work.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

# A broken checkpoint that was written over the last good one is not the end.
resource "aws_s3_bucket_versioning" "work" {
  bucket = aws_s3_bucket.work.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "work" {
  bucket = aws_s3_bucket.work.id

  rule {
    id     = "old"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = 14
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 3
    }
  }

  depends_on = [aws_s3_bucket_versioning.work]
}

# Counts only what carries the tag, and only once the tag is a cost allocation tag.
resource "aws_budgets_budget" "this" {
  count        = var.budget_email != "" && var.budget_usd != null ? 1 : 0
  name         = local.name
  budget_type  = "COST"
  limit_amount = tostring(var.budget_usd)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"

  cost_filter {
    name   = "TagKeyValue"
    values = [format("user:chipwise-deployment$%s", local.name)]
  }

  notification {
    comparison_operator        = "GREATER_THAN"
    threshold                  = 80
    threshold_type             = "PERCENTAGE"
    notification_type          = "ACTUAL"
    subscriber_email_addresses = [var.budget_email]
  }

  notification {
    comparison_operator        = "GREATER_THAN"
    threshold                  = 100
    threshold_type             = "PERCENTAGE"
    notification_type          = "FORECASTED"
    subscriber_email_addresses = [var.budget_email]
  }
}
