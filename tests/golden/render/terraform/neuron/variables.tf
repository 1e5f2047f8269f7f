# What the plan cannot know. Those without a default must be given.

variable "region" {
  description = "Where the machines are: the plan's choice."
  type        = string
  default     = "us-east-1"
}

variable "subnet_ids" {
  description = "Private subnets with a way out (NAT or endpoints), for images and weights. The first is used: machines that work together are in one zone. Networks are made by their owners, so this module makes none."
  type        = list(string)

  validation {
    condition     = length(var.subnet_ids) > 0
    error_message = "Give at least one subnet."
  }
}

variable "image" {
  description = "Container image with its registry. Build it from the Dockerfile of `chipwise render --to dockerfile` and push it."
  type        = string
}

variable "ami_id" {
  description = "AMI of your own, to pin it. null: the public image with the driver that is the newest at the first apply; it is then kept until `terraform apply -replace=terraform_data.ami[0]`."
  type        = string
  default     = null
}

variable "instance_types" {
  description = "Machine type. One only: machines that work together wait for the slowest."
  type        = list(string)
  default     = ["trn1.32xlarge"]
}

variable "session_manager" {
  description = "Let people sign in through Session Manager. There is no SSH and no open port for it."
  type        = bool
  default     = false
}

variable "budget_email" {
  description = "Who is notified when the budget is nearly spent. Empty: no budget is made."
  type        = string
  default     = ""
}

variable "budget_usd" {
  description = "Budget a month. null: none was stated."
  type        = number
  default     = 5000
}
