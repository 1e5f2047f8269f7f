#!/usr/bin/env bash
#SBATCH -J nemo
#SBATCH -N 8
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8
#SBATCH --exclusive
#SBATCH -t 24:00:00

export NCCL_SOCKET_IFNAME=ib0
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1)
export MASTER_PORT=6000
export WANDB_API_KEY=$(< $HOME/.wandb)

srun --container-image=nvcr.io/nvidia/nemo:25.07 \
  --container-mounts=/lustre:/lustre \
  python pretrain.py trainer.num_nodes=8 trainer.devices=8 \
    exp_manager.exp_dir=/lustre/exp exp_manager.resume_if_exists=true
