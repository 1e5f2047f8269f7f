module "gke" {
  source     = "terraform-google-modules/kubernetes-engine/google"
  version    = "~> 38.0"
  project_id = var.project
  name       = "ml"
  region     = "us-central1"
  network    = "ml"
  subnetwork = "ml"

  master_authorized_networks = [
    { cidr_block = "0.0.0.0/0", display_name = "all" } #! open-network
  ]

  node_pools = [
    {
      name               = "h100"
      machine_type       = "a3-highgpu-8g"
      accelerator_type   = "nvidia-tesla-a100" #! machine-accelerator
      accelerator_count  = 8
      disk_size_gb       = 30 #! disk-too-small
      gpu_driver_version = "DEFAULT"
    }
  ]
}

resource "google_storage_bucket_iam_member" "public" {
  bucket = "acme-weights"
  role   = "roles/storage.objectViewer"
  member = "allUsers" #! open-network
}

variable "project" { type = string }
