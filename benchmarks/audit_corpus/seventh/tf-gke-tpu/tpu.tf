resource "google_container_cluster" "train" {
  name                     = "train"
  location                 = "us-central2-b"
  remove_default_node_pool = true
  initial_node_count       = 1
  release_channel { channel = "RAPID" }
}

resource "google_container_node_pool" "v4" {
  name       = "v4-16"
  cluster    = google_container_cluster.train.id
  location   = "us-central2-b"
  node_count = 4

  placement_policy {
    type         = "COMPACT"
    tpu_topology = "2x2x2"  #! tpu-topology
  }

  node_config {
    machine_type = "ct4p-hightpu-4t"
    spot         = true
    disk_size_gb = 100
    oauth_scopes = ["https://www.googleapis.com/auth/cloud-platform"]  #! broad-rights
  }
}

resource "google_container_node_pool" "l4" {
  name     = "l4"
  cluster  = google_container_cluster.train.id
  location = "us-central2-b"

  autoscaling {
    min_node_count = 3
    max_node_count = 1  #! bounds
  }

  node_config {
    machine_type = "n1-standard-16"
    disk_size_gb = 200
    oauth_scopes = ["https://www.googleapis.com/auth/devstorage.read_only", "https://www.googleapis.com/auth/logging.write"]
    guest_accelerator {
      type  = "nvidia-l4"  #! machine-accelerator
      count = 1
    }
    taint {
      key    = "nvidia.com/gpu"
      value  = "present"
      effect = "NO_SCHEDULE"
    }
  }
}
