//! The folder `skills` of an agent: a folder for each skill, one level deep.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;

use super::markdown::is_id;
use super::report::Report;
use super::sections::{MEMORY_FILE, SKILL_FILE};
use super::{ConfigError, bytes, decode, memory, skill};
use crate::diagnostic::Diagnostic;
use crate::skill::{MemorySchema, PROJECT, Skill};

/// The folder.
const FOLDER: &str = "skills";

/// Names that a skill cannot have, since conditions and mentions have another use for them.
const RESERVED: [&str; 2] = [PROJECT, "system"];

/// How the file of a skill is named elsewhere, in small letters.
const MISNAMED: [&str; 6] = ["skill.md", "skills.md", "skill.markdown", "skill.yaml", "skill.yml", "skill.txt"];

/// Reads the skills of the agent in the folder `root`, by their ids. What they name in other files is still to be checked.
pub(crate) fn load_skills(root: &Path) -> Result<(Vec<Skill>, Vec<Diagnostic>), ConfigError> {
    let folder = root.join(FOLDER);
    let (mut skills, mut found) = (vec![], vec![]);
    for name in names(&folder)? {
        let path = folder.join(&name);
        let Some(id) = name.to_str() else {
            tell(&path, &mut found, |report| {
                report.error("invalid-name", None, "The folder's name is no UTF-8".to_owned(), None);
            });
            continue;
        };
        // Tools of the author's leave folders such as `.git` and `__pycache__`.
        if id.starts_with('.') || id.starts_with("__") {
            continue;
        }
        if path.is_dir() {
            skills.extend(load_skill(&path, id, &mut found)?);
        } else if id.to_lowercase().ends_with(".md") && !id.eq_ignore_ascii_case("readme.md") {
            tell(&path, &mut found, |report| {
                let hint = format!("move it to `{FOLDER}/<id>/{SKILL_FILE}`");
                report.warning("misnamed-file", None, format!("`{id}` is not read: a skill is a folder"), hint);
            });
        }
    }
    Ok((skills, found))
}

/// Reads the memory of the project in the folder `root`.
pub(crate) fn load_memory(root: &Path) -> Result<(MemorySchema, Vec<Diagnostic>), ConfigError> {
    let mut found = vec![];
    let schema = load_schema(root, &mut found, memory::read_project)?;
    Ok((schema, found))
}

/// One skill, where the folder is one.
fn load_skill(folder: &Path, id: &str, found: &mut Vec<Diagnostic>) -> Result<Option<Skill>, ConfigError> {
    let inside = names(folder)?;
    if !inside.contains(&OsString::from(SKILL_FILE)) {
        tell_missing(folder, id, &inside, found);
        return Ok(None);
    }
    let path = folder.join(SKILL_FILE);
    let unreadable = |reason| ConfigError::Unreadable { path: path.clone(), reason };
    let bytes = bytes(&path).map_err(unreadable)?.unwrap_or_default();
    let mut report = Report::new(&path);
    if RESERVED.contains(&id) || !is_id(id) {
        let hint = "name the folder with letters, digits and `_`, such as `card_replace`".to_owned();
        report.error("invalid-name", None, format!("A skill cannot have the id `{id}`"), hint);
    }
    let mut skill = match decode(&bytes, &mut report) {
        Some(text) => skill::read(id, text, &mut report),
        None => Skill { id: id.to_owned(), name: id.to_owned(), ..Skill::default() },
    };
    found.extend(report.finish());
    skill.memory = load_schema(folder, found, memory::read_skill)?;
    Ok(Some(skill))
}

fn load_schema(
    folder: &Path,
    found: &mut Vec<Diagnostic>,
    read: fn(&str, &mut Report) -> MemorySchema,
) -> Result<MemorySchema, ConfigError> {
    let path = folder.join(MEMORY_FILE);
    let mut report = Report::new(&path);
    let schema = match bytes(&path).map_err(|reason| ConfigError::Unreadable { path: path.clone(), reason })? {
        Some(bytes) => match decode(&bytes, &mut report) {
            Some(text) => read(text, &mut report),
            None => MemorySchema { unread: true, ..MemorySchema::default() },
        },
        None => {
            let other = folder.join("memory.yaml");
            if other.is_file() {
                tell(&other, found, |report| {
                    let hint = format!("rename it to `{MEMORY_FILE}`");
                    report.warning("misnamed-file", None, "`memory.yaml` is not read".to_owned(), hint);
                });
            }
            MemorySchema::default()
        }
    };
    found.extend(report.finish());
    Ok(schema)
}

/// Tells why a folder is no skill, unless there is nothing in it that could be meant as one.
fn tell_missing(folder: &Path, id: &str, inside: &BTreeSet<OsString>, found: &mut Vec<Diagnostic>) {
    let is_misnamed = |name: &&str| MISNAMED.contains(&&*name.to_lowercase());
    let misnamed = inside.iter().filter_map(|name| name.to_str()).find(is_misnamed);
    let deeper = |name: &&OsString| folder.join(name).join(SKILL_FILE).is_file();
    let (path, message, hint) = if let Some(name) = misnamed {
        (folder.join(name), format!("`{name}` is not read"), format!("rename it to `{SKILL_FILE}`"))
    } else if let Some(name) = inside.iter().find(deeper) {
        let message = format!("`{id}/{}` is not read: skills are one level deep", name.display());
        (folder.join(name), message, format!("move the folder to `{FOLDER}`"))
    } else if inside.iter().any(|name| !name.as_encoded_bytes().starts_with(b".") && name != "__pycache__") {
        (folder.to_owned(), format!("`{id}` is no skill: it has no `{SKILL_FILE}`"), "add one".to_owned())
    } else {
        return;
    };
    tell(&path, found, |report| report.warning("misnamed-file", None, message, hint));
}

/// The names in a folder, sorted; none where it does not exist.
fn names(folder: &Path) -> Result<BTreeSet<OsString>, ConfigError> {
    let unreadable = |reason| ConfigError::Unreadable { path: folder.to_owned(), reason };
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry.map_err(unreadable)?.file_name())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(unreadable(error)),
    }
}

/// Tells something of a file as a whole.
fn tell(path: &Path, found: &mut Vec<Diagnostic>, what: impl FnOnce(&mut Report)) {
    let mut report = Report::new(path);
    what(&mut report);
    found.extend(report.finish());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::super::testing::{changed, told};
    use super::*;

    const GOOD: [(&str, &str); 3] = [
        (
            SKILL_FILE,
            "---\nname: Card\ndescription: >\n  Lost.\nrequires: session.project.ok\ncomplete_when: {criteria: [a]}\nimport_tools: [look, \
             mcp/bank:pay]\ntool_constraints:\n  - pay:\n      requires: >\n        session.card.a\n        and session.card.b\n      \
             requires_confirmation: {enabled: true}\nutter:\n  - utter_x: {when: session.card.a}\n---\nHelp @memory.project.ok.\n\nif: \
             session.card.a == \"é\"\nCall @tool.pay and @block.b.\n\n:::ordered_block id=b\nsteps:\n  - id: s\n    instructions: |\n      \
             Ask @memory.card.a.\n    complete_when: session.card.a\n  - id: t\n    noop: true\n    next:\n      - if: session.card.b\n        \
             then: s\n      - else: END\n:::\nThen @skill.other.\n",
        ),
        (
            MEMORY_FILE,
            "{schema: {public: {a: {type: categorical, enum_values: [x, y], initial_value: x}}, private: {b: {type: bool}}}}",
        ),
        (MEMORY_FILE, "ok:\n  type: bool\n  initial_value: false\n  description: |\n    Whether.\n  seed: true\n"),
    ];

    /// Letters that mean something in these files.
    const ODD: &str = "[-\\]a:{}\\[#&*!|>'\"%, \n\t\r0.$<@=é]{0,3}|:::|if:|@memory\\.|session\\.|---\n";

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn loaded(root: &Path) -> (Vec<String>, Vec<String>) {
        let (skills, found) = load_skills(root).unwrap();
        let shown = |problem: &Diagnostic| problem.to_string().replace(&format!("{}/", root.display()), "");
        (skills.into_iter().map(|skill| skill.id).collect(), found.iter().map(shown).collect())
    }

    #[test]
    fn good_files_have_no_problems() {
        for (name, text) in GOOD {
            assert_eq!(told(name, text), Vec::<String>::new());
        }
    }

    #[test]
    fn skills_are_the_folders_that_have_a_skill_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(loaded(folder.path()), (vec![], vec![]));
        let text = "\u{feff}---\nname: a\ndescription: b\n---\nHelp.\n";
        write(
            folder.path(),
            &[
                ("skills/b/skill.md", text),
                ("skills/b/memory.yml", "schema: {public: {x: {type: int}}}"),
                ("skills/2-a_ü/skill.md", text),
                ("skills/.git/skill.md", ""),
                ("skills/__pycache__/x.pyc", ""),
                ("skills/empty/.keep", ""),
                ("skills/README.md", ""),
            ],
        );
        assert_eq!(loaded(folder.path()), (vec!["2-a_ü".to_owned(), "b".to_owned()], vec![]));
        let (skills, _) = load_skills(folder.path()).unwrap();
        assert_eq!(skills[1].memory.entries[0].name, "x");
        assert_eq!(skills[1].references.file, folder.path().join("skills/b/skill.md"));
    }

    #[test]
    fn what_may_be_meant_as_a_skill_is_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                ("skills/a/SKILL.md", ""),
                ("skills/b/Skill.yaml", ""),
                ("skills/c/d/skill.md", ""),
                ("skills/e/tools.py", ""),
                ("skills/f.md", ""),
                ("skills/g/skill.md", "---\nname: a\ndescription: b\n---\n"),
                ("skills/g/memory.yaml", ""),
            ],
        );
        assert_eq!(
            loaded(folder.path()),
            (
                vec!["g".to_owned()],
                [
                    "skills/a/SKILL.md: warning[misnamed-file]: `SKILL.md` is not read\n  hint: rename it to `skill.md`",
                    "skills/b/Skill.yaml: warning[misnamed-file]: `Skill.yaml` is not read\n  hint: rename it to `skill.md`",
                    "skills/c/d: warning[misnamed-file]: `c/d` is not read: skills are one level deep\n  hint: move the folder to \
                     `skills`",
                    "skills/e: warning[misnamed-file]: `e` is no skill: it has no `skill.md`\n  hint: add one",
                    "skills/f.md: warning[misnamed-file]: `f.md` is not read: a skill is a folder\n  hint: move it to \
                     `skills/<id>/skill.md`",
                    "skills/g/memory.yaml: warning[misnamed-file]: `memory.yaml` is not read\n  hint: rename it to `memory.yml`",
                ]
                .map(str::to_owned)
                .to_vec()
            )
        );
    }

    #[test]
    fn an_id_can_be_named_in_conditions() {
        let folder = tempfile::tempdir().unwrap();
        let ids = ["a.b", "a b", "card-", "project", "system"];
        for id in ids {
            write(folder.path(), &[(&format!("skills/{id}/skill.md"), "---\nname: a\ndescription: b\n---\n")]);
        }
        let (mut expected, hint) = (ids, "name the folder with letters, digits and `_`, such as `card_replace`");
        expected.sort_unstable();
        let told = |id| {
            format!("skills/{id}/skill.md: error[invalid-name]: A skill cannot have the id `{id}`\n  hint: {hint}")
        };
        assert_eq!(loaded(folder.path()).1, expected.map(told));
    }

    #[test]
    fn a_skill_that_is_no_text_is_known_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("skills/a/skill.md", "")]);
        fs::write(folder.path().join("skills/a/skill.md"), b"---\n\xff").unwrap();
        let told = "skills/a/skill.md:2:1: error[invalid-yaml]: This is no UTF-8\n  hint: save the file as UTF-8";
        assert_eq!(loaded(folder.path()), (vec!["a".to_owned()], vec![told.to_owned()]));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("skills/a/skill.md");
        fs::create_dir_all(&path).unwrap();
        let expected = format!("`{}` cannot be read: Is a directory (os error 21)", path.display());
        assert_eq!(load_skills(folder.path()).unwrap_err().to_string(), expected);
    }

    #[test]
    fn the_projects_memory_is_at_the_root() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load_memory(folder.path()).unwrap(), (MemorySchema::default(), vec![]));
        write(folder.path(), &[("memory.yml", "ok: {type: bool}")]);
        let (read, found) = load_memory(folder.path()).unwrap();
        assert_eq!((read.entries.len(), found), (1, vec![]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn no_text_makes_it_panic(text in any::<String>(), which in 0..3_usize) {
            told(GOOD[which].0, &text);
            told(SKILL_FILE, &format!("---\nname: a\ndescription: b\n---\n{text}"));
        }

        #[test]
        fn no_change_of_a_good_file_makes_it_panic(
            which in 0..3_usize,
            changes in prop::collection::vec((any::<Index>(), 0..6_usize, ODD), 1..6),
        ) {
            let (name, text) = GOOD[which];
            told(name, &changed(text, changes));
        }
    }
}
