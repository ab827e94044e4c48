//! `mindprof completions`.

use crate::program::run;

#[test]
fn every_command_is_completed_in_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(["completions", shell]).printed();
        for command in ["table", "stacks", "slim", "diff", "fail-over"] {
            assert!(script.contains(command), "{shell} {command}");
        }
    }
}

#[test]
fn an_unknown_shell_is_refused() {
    let run = run(["completions", "command.com"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("bash"), "{}", run.stderr);
}

#[test]
fn values_are_completed_too() {
    for shell in ["bash", "fish", "zsh"] {
        let script = run(["completions", shell]).printed();
        for value in [
            "pftrace",
            "json.zst",
            "arrow",
            "self_cpu_time_total",
            "self_device_percent",
            "raw.json",
            "overload",
        ] {
            assert!(script.contains(value), "{shell} {value}");
        }
    }
}
