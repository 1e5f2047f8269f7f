resource "aws_sagemaker_model" "mixtral" {
  name               = "mixtral"
  execution_role_arn = aws_iam_role.sagemaker.arn

  primary_container {
    image = "763104351884.dkr.ecr.us-west-2.amazonaws.com/djl-inference:latest" #! image-latest
    environment = {
      HF_MODEL_ID                   = "mistralai/Mixtral-8x7B-Instruct-v0.1"
      HF_TOKEN                      = "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" #! plain-secret
      OPTION_TENSOR_PARALLEL_DEGREE = "8" #! tp-above-devices
      OPTION_DTYPE                  = "bf16"
    }
  }
}

resource "aws_sagemaker_endpoint_configuration" "mixtral" {
  name = "mixtral"

  production_variants {
    variant_name                                      = "main"
    model_name                                        = aws_sagemaker_model.mixtral.name
    instance_type                                     = "ml.g5.12xlarge" #! model-above-memory
    initial_instance_count                            = 2
    container_startup_health_check_timeout_in_seconds = 60 #! probe-before-load
    model_data_download_timeout_in_seconds            = 1800
  }
}

resource "aws_sagemaker_endpoint" "mixtral" {
  name                 = "mixtral"
  endpoint_config_name = aws_sagemaker_endpoint_configuration.mixtral.name
}

resource "aws_appautoscaling_target" "mixtral" {
  service_namespace  = "sagemaker"
  resource_id        = "endpoint/mixtral/variant/primary" #! autoscaling-target
  scalable_dimension = "sagemaker:variant:DesiredInstanceCount"
  min_capacity       = 2
  max_capacity       = 6
}

resource "aws_appautoscaling_policy" "mixtral" {
  name               = "cpu"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.mixtral.service_namespace
  resource_id        = aws_appautoscaling_target.mixtral.resource_id
  scalable_dimension = aws_appautoscaling_target.mixtral.scalable_dimension
  target_tracking_scaling_policy_configuration {
    target_value = 60
    customized_metric_specification {
      metric_name = "CPUUtilization" #! hpa-on-cpu
      namespace   = "/aws/sagemaker/Endpoints"
      statistic   = "Average"
    }
  }
}

resource "aws_iam_role" "sagemaker" {
  name = "sagemaker-mixtral"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = "*" } #! anyone-assumes
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy_attachment" "sagemaker" {
  role       = aws_iam_role.sagemaker.name
  policy_arn = "arn:aws:iam::aws:policy/AdministratorAccess" #! broad-rights
}
