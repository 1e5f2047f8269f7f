resource "aws_batch_compute_environment" "gpu" {
  compute_environment_name = "gpu-spot"
  type                     = "MANAGED"
  service_role             = aws_iam_role.batch.arn

  compute_resources {
    type                = "SPOT"
    allocation_strategy = "SPOT_PRICE_CAPACITY_OPTIMIZED"
    instance_type       = ["g5.xlarge", "g5.2xlarge"]
    min_vcpus           = 16  #! idle-cluster
    max_vcpus           = 64
    subnets             = var.subnets
    security_group_ids  = [aws_security_group.batch.id]
    instance_role       = aws_iam_instance_profile.batch.arn
  }
}

resource "aws_batch_job_definition" "score" {
  name = "score"
  type = "container"  #! no-retry*

  container_properties = jsonencode({
    image      = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/score:latest"  #! image-latest
    command    = ["torchrun", "--nproc_per_node=4", "score.py", "--shard", "Ref::shard"]
    jobRoleArn = aws_iam_role.job.arn
    privileged = true  #! privileged
    resourceRequirements = [
      { type = "VCPU", value = "16" },
      { type = "MEMORY", value = "60000" },
      { type = "GPU", value = "4" }  #! machine-too-small
    ]
  })
}

resource "aws_iam_role_policy" "job" {
  role = aws_iam_role.job.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = "s3:*"  #! broad-rights
      Resource = "*"
    }]
  })
}
