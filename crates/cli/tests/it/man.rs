//! `mindprof man`.

use crate::program::run;

#[test]
fn the_program_and_each_command_have_a_page() {
    let page = run(["man"]).printed();
    assert!(page.contains(".TH mindprof 1"), "{page}");
    let names = page.lines().filter_map(|line| {
        let name = line.strip_prefix("mindprof\\-")?;
        name.strip_suffix("(1)").filter(|name| *name != "help")
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 10, "{names:?}");
    for command in names.iter().map(|name| name.replace('\\', "")) {
        let own = run(["man", command.as_str()]).printed();
        assert!(own.contains(&format!(".TH mindprof-{command} 1")), "{own}");
        assert!(own.contains("Example:"), "{own}");
    }
}

#[test]
fn an_unknown_command_is_refused() {
    let run = run(["man", "tables"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    let expected = "error: unknown command `tables`\nhint: use one of run, advise, ";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
}
