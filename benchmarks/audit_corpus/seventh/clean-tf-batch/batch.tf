resource "aws_batch_compute_environment" "gpu" {
  compute_environment_name = "gpu-spot"
  type                     = "MANAGED"
  service_role             = aws_iam_role.batch.arn

  compute_resources {
    type                = "SPOT"
    allocation_strategy = "SPOT_PRICE_CAPACITY_OPTIMIZED"
    instance_type       = ["g5.12xlarge", "g5.24xlarge"]
    min_vcpus           = 0
    max_vcpus           = 192
    subnets             = var.subnets
    security_group_ids  = [aws_security_group.batch.id]
    instance_role       = aws_iam_instance_profile.batch.arn
  }
}

resource "aws_batch_job_definition" "score" {
  name = "score"
  type = "container"

  retry_strategy {
    attempts = 5
  }

  container_properties = jsonencode({
    image      = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/score:1.8.0"
    command    = ["torchrun", "--nproc_per_node=4", "score.py", "--shard", "Ref::shard", "--out", "s3://acme-scores/Ref::shard"]
    user       = "1000"
    jobRoleArn = aws_iam_role.job.arn
    linuxParameters = { sharedMemorySize = 16384 }
    resourceRequirements = [
      { type = "VCPU", value = "44" },
      { type = "MEMORY", value = "160000" },
      { type = "GPU", value = "4" }
    ]
  })
}

resource "aws_iam_role_policy" "job" {
  role = aws_iam_role.job.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = ["s3:GetObject", "s3:PutObject"]
      Resource = "arn:aws:s3:::acme-scores/*"
    }]
  })
}
