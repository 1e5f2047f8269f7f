resource "google_container_node_pool" "l4" {
  name     = "l4-pool"
  cluster  = google_container_cluster.primary.id
  location = "us-central1"

  autoscaling {
    min_node_count = 0
    max_node_count = 6
  }

  node_config {
    machine_type = "a2-highgpu-1g"
    spot         = false
    disk_size_gb = 200
    disk_type    = "pd-balanced"

    guest_accelerator {
      type  = "nvidia-l4"  #! machine-accelerator
      count = 1
      gpu_driver_installation_config {
        gpu_driver_version = "LATEST"
      }
    }

    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
  }
}

resource "google_container_node_pool" "h100" {
  name     = "h100-pool"
  cluster  = google_container_cluster.primary.id
  location = "us-central1"

  autoscaling {
    min_node_count = 6  #! bounds
    max_node_count = 4
  }

  node_config {
    machine_type = "a3-highgpu-8g"
    disk_size_gb = 30  #! disk-too-small

    guest_accelerator {
      type  = "nvidia-h100-80gb"
      count = 4  #! machine-accelerator
      gpu_driver_installation_config {
        gpu_driver_version = "DEFAULT"
      }
    }

    service_account = google_service_account.nodes.email
    oauth_scopes    = ["https://www.googleapis.com/auth/cloud-platform"]
  }
}

resource "google_project_iam_member" "nodes_owner" {
  project = var.project
  role    = "roles/owner"  #! broad-rights
  member  = "serviceAccount:${google_service_account.nodes.email}"
}
