#!/bin/bash
#SBATCH -J caption
#SBATCH --array=0-63
#SBATCH -p gpu  #! no-gpu
#SBATCH -c 8
#SBATCH --mem=8G
#SBATCH -t 04:00:00
#SBATCH -o caption.log  #! two-writers

cd $SLURM_SUBMIT_DIR
pip install -U vllm  #! unpinned-packages

python caption.py --model Qwen/Qwen2.5-VL-72B-Instruct --shard $SLURM_ARRAY_TASK_ID --num-shards 64 \
    --device cuda --out /scratch/captions/captions.jsonl  #! two-writers
