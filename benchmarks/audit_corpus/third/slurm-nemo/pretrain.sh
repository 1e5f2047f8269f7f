#!/usr/bin/env bash
#SBATCH -J nemo
#SBATCH -N 8
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --exclusive
#SBATCH -t 24:00:00

export NCCL_SOCKET_IFNAME=lo #! nccl-env
export MASTER_ADDR=127.0.0.1 #! rendezvous-localhost
export MASTER_PORT=6000
export WANDB_API_KEY=1f0e9d8c7b6a59483726151403f2e1d0c9b8a796 #! plain-secret

srun --container-image=nvcr.io/nvidia/nemo:latest \ #! image-latest
  --container-mounts=/lustre:/lustre \
  python pretrain.py trainer.num_nodes=8 trainer.devices=8 \
    exp_manager.exp_dir=/lustre/exp exp_manager.resume_if_exists=true
