module "gke" {
  source     = "terraform-google-modules/kubernetes-engine/google"
  version    = "~> 38.0"
  project_id = var.project
  name       = "ml"
  region     = "us-central1"
  network    = "ml"
  subnetwork = "ml"

  master_authorized_networks = [
    { cidr_block = "198.51.100.0/24", display_name = "office" }
  ]

  node_pools = [
    {
      name               = "h100"
      machine_type       = "a3-highgpu-8g"
      accelerator_type   = "nvidia-h100-80gb"
      accelerator_count  = 8
      disk_size_gb       = 500
      gpu_driver_version = "DEFAULT"
    }
  ]
}

resource "google_storage_bucket_iam_member" "public" {
  bucket = "acme-weights"
  role   = "roles/storage.objectViewer"
  member = "serviceAccount:models@acme.iam.gserviceaccount.com"
}

variable "project" { type = string }
