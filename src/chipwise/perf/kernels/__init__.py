"""What accelerators are bought for besides transformers: HPC, rendering, video, FPGA streams, quantum, processors, edge."""
