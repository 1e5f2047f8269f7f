resource "aws_sagemaker_model" "llm" {
  name               = "llama-3-8b"
  execution_role_arn = aws_iam_role.sm.arn

  primary_container {
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.4-gpu-py311-cu124-ubuntu22.04"
    environment = {
      HF_MODEL_ID    = "meta-llama/Llama-3.1-8B-Instruct"
      SM_NUM_GPUS    = "4"  #! tp-above-devices
      HF_TOKEN       = "hf_MnBvCxZlKjHgFdSaPoIuYtReWq1234567890"  #! plain-secret
      MAX_INPUT_TOKENS = "4096"
      MAX_TOTAL_TOKENS = "8192"
    }
  }
}

resource "aws_sagemaker_endpoint_configuration" "llm" {
  name = "llama-3-8b"
  production_variants {
    variant_name                                      = "main"
    model_name                                        = aws_sagemaker_model.llm.name
    instance_type                                     = "ml.g5.2xlarge"
    initial_instance_count                            = 1
    container_startup_health_check_timeout_in_seconds = 60  #! probe-before-load
  }
}

resource "aws_iam_role_policy" "sm" {
  role = aws_iam_role.sm.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = "*"  #! broad-rights
      Resource = "*"
    }]
  })
}
