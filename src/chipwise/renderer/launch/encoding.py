"""The command of FFmpeg for one stream or file of video."""

from __future__ import annotations

from chipwise.workload.kinds import Transcode

_CODECS = {"h264": "h264", "hevc": "hevc", "h265": "hevc", "av1": "av1", "vp9": "vp9"}


def ffmpeg_words(work: Transcode, hardware: bool) -> tuple[str, ...]:
    """One stream in, every wanted output out. Where it comes from and goes to are settings of the container."""
    words = ["ffmpeg", "-hide_banner", "-nostdin"]
    if hardware:
        words += ["-hwaccel", "cuda", "-hwaccel_output_format", "cuda"]
    words += ["-i", "/data/in.ts"]
    software = {"h264": "libx264", "hevc": "libx265", "av1": "libsvtav1", "vp9": "libvpx-vp9"}
    for index, output in enumerate(work.outputs):
        codec = _CODECS.get(str(output.codec).lower(), "h264")
        coder = f"{codec}_nvenc" if hardware and codec != "vp9" else software[codec]
        height = getattr(output.resolution, "height", 0)
        scale = "scale_cuda" if hardware else "scale"
        words += ["-map", "0:v:0", "-map", "0:a?", "-c:v", coder, "-c:a", "copy"]
        words += ["-vf", f"{scale}=-2:{height:g}"] if height else []
        words += ["-r", f"{output.fps:g}"] if getattr(output, "fps", None) else []
        if output.bitrate is not None:
            words += ["-b:v", f"{output.bitrate * 8 / 1000:.0f}k"]
        # MPEG-TS has no place for the newer codecs: players would not know what it carries.
        words += (
            ["-f", "matroska", f"/data/out-{index}.mkv"]
            if codec in ("av1", "vp9")
            else ["-f", "mpegts", f"/data/out-{index}.ts"]
        )
    return tuple(words)
