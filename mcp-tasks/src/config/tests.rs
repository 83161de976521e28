use super::*;

fn with_file(text: &str) -> Config {
    let file = parse(Path::new("mcp-tasks.toml"), text).unwrap();
    Config {
        code: BTreeMap::new(),
        environment: Environment::Given(BTreeMap::new()),
        file: Some(file),
    }
}

#[test]
fn code_is_stronger_than_environment_and_environment_than_the_file() {
    let mut config = with_file("a = 1\nb = 1\nc = 1");
    config.environment = Environment::Given([("A", "2"), ("B", "2")].map(|(k, v)| (k.to_owned(), v.into())).into());
    config.code.insert("a".to_owned(), "3".to_owned());
    let found = ["a", "b", "c", "d"].map(|key| config.get(key));
    assert_eq!(
        found.each_ref().map(Option::as_deref),
        [Some("3"), Some("2"), Some("1"), None]
    );
}

#[test]
fn dotted_keys_quoted_keys_and_nested_tables_are_the_same() {
    for text in [
        "a.b.c = true",
        "[a.b]\nc = true",
        "[a]\nb.c = true",
        "\"a.b.c\" = true",
        "a = { \"b.c\" = true }",
    ] {
        assert_eq!(with_file(text).get("a.b.c").as_deref(), Some("true"), "{text}");
    }
}

#[test]
fn one_key_in_two_spellings_is_refused() {
    let error = parse(Path::new("x.toml"), "\"a.b\" = 1\na.b = 2")
        .map(drop)
        .unwrap_err();
    assert!(error.to_string().contains("`a.b` twice"), "{error}");
}

#[test]
fn what_is_no_text_number_or_truth_is_refused_with_its_key() {
    let config = with_file("a = [1]\nb = 2020-01-01\n[c]\nd = 1");
    for (key, word) in [("a", "an array"), ("b", "a date"), ("c", "a table")] {
        let problem = config.find(key).map(drop).unwrap_err().to_string();
        assert!(problem.contains(key) && problem.contains(word), "{problem}");
    }
}

#[test]
fn a_file_that_is_no_toml_is_named_with_the_line_and_not_quoted() {
    let error = parse(Path::new("x.toml"), "a = 1\nb = hunter2\n")
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(error.contains("x.toml") && error.contains("line 2"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn a_missing_file_is_an_error_only_if_it_was_asked_for() {
    let nothing: [(&str, &str); 0] = [];
    assert!(Config::builder().environment(nothing).build().is_ok());
    assert!(
        Config::builder()
            .environment([(FILE_VARIABLE, "/nowhere/x.toml")])
            .build()
            .is_err()
    );
    assert!(
        Config::builder()
            .environment(nothing)
            .file("/nowhere/x.toml")
            .build()
            .is_err()
    );
}

#[test]
fn an_unknown_key_of_ours_in_the_file_is_refused() {
    let mut problems = Problems::default();
    let mut warnings = Warnings::default();
    with_file("[mcp.tasks]\ndefault_ttl = \"PT1H\"").check_keys(settings::KEYS, &mut problems, &mut warnings);
    let error = problems.finish().unwrap_err().to_string();
    assert!(
        error.contains("`mcp.tasks.default_ttl`") && error.contains("`mcp.tasks.default-ttl`"),
        "{error}"
    );
}

#[test]
fn a_misspelt_table_of_ours_in_the_file_is_refused_unless_a_placeholder_uses_it() {
    let check = |text: &str, used: &[&str]| {
        let mut problems = Problems::default();
        with_file(text).check_keys(used.iter().copied(), &mut problems, &mut Warnings::default());
        problems.finish()
    };
    let text = "[mcp.task]\nlease = \"PT1M\"\n[mcpserver]\nlease = 1\n[video]\nttl = 1";
    let error = check(text, &settings::KEYS).unwrap_err();
    assert_eq!(error.problems().len(), 1, "{error}");
    let error = error.to_string();
    assert!(
        error.contains("`mcp.task.lease`") && error.contains("`mcp.tasks.lease`"),
        "{error}"
    );
    assert!(check(text, &["mcp.task.lease"]).is_ok());
}

#[test]
fn a_variable_that_looks_like_a_setting_is_warned_of_and_stops_nothing() {
    let mut config = with_file("");
    let variables = [
        "MCP_TASKS_LEESE",
        "MCP_TASKS_LEASE",
        "MCP_TASKS_CONFIG",
        "MCP_TASKS_TOKEN",
        "LEESE",
    ];
    config.environment = Environment::Given(variables.map(|name| (name.to_owned(), "x".into())).into());
    let (mut problems, mut warnings) = (Problems::default(), Warnings::default());
    config.check_keys(settings::KEYS, &mut problems, &mut warnings);
    assert!(problems.finish().is_ok());
    let [warning] = warnings.texts() else {
        panic!("{warnings:?}")
    };
    assert!(warning.contains("`MCP_TASKS_LEESE`"), "{warning}");
}

#[test]
fn values_are_not_shown_when_it_is_debugged() {
    let config = Config::builder()
        .without_file()
        .set("db.password", "hunter2")
        .build()
        .unwrap();
    let shown = format!("{config:?}");
    assert!(shown.contains("db.password") && !shown.contains("hunter2"));
}
