"""How every program for AWS ends: what a person is told, and what a shell. It closes a `try` of `main`."""

ENDING = """
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    except (ClientError, BotoCoreError) as error:  # no credentials and no network too
        print(f"AWS: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
""".lstrip("\n")
