//! Generated code as a listing, with the place marked where it failed.

use super::runner::CodeFrame;

/// How many lines are shown before and after a marked one.
const AROUND: usize = 5;
/// How long a line is shown, in characters.
const WIDTH: usize = 200;

/// The code with the lines of `frames` marked, and a caret under the innermost; nothing where no frame lies in it.
pub(super) fn listing(source: &str, frames: &[CodeFrame]) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let marked: Vec<usize> =
        frames.iter().map(|frame| frame.line as usize).filter(|at| (1..=lines.len()).contains(at)).collect();
    let is_near = |line: usize| marked.iter().any(|at| line.abs_diff(*at) <= AROUND);
    let mut shown = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let number = index + 1;
        if !is_near(number) {
            if shown.last().is_some_and(|last: &String| last != "  ...") {
                shown.push("  ...".to_owned());
            }
            continue;
        }
        let mark = if marked.contains(&number) { '>' } else { ' ' };
        let text: String = line.chars().take(WIDTH).collect();
        shown.push(format!("{mark} {number:03} | {text}").trim_end().to_owned());
        if let Some(frame) = frames.last().filter(|frame| frame.line as usize == number) {
            shown.push(caret(line, frame));
        }
    }
    shown.join("\n")
}

/// The line below a marked one.
fn caret(line: &str, frame: &CodeFrame) -> String {
    let begin = (frame.column.max(1) as usize - 1).min(WIDTH);
    let end = (frame.end_column.max(1) as usize - 1).clamp(begin, WIDTH);
    // Tabs stay tabs, so that the caret stands where the code does.
    let before: String =
        line.chars().chain(std::iter::repeat(' ')).take(begin).map(|c| if c == '\t' { c } else { ' ' }).collect();
    format!("      | {before}{}", "^".repeat((end - begin).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(line: u32, column: u32, end_column: u32) -> CodeFrame {
        CodeFrame { line, column, end_column, function: None }
    }

    #[test]
    fn the_line_that_failed_is_marked_and_its_place_underlined() {
        assert_eq!(
            listing("x = 1\nawait demo()\ny = 2", &[frame(2, 7, 13)]),
            "  001 | x = 1\n> 002 | await demo()\n      |       ^^^^^^\n  003 | y = 2"
        );
    }

    #[test]
    fn far_lines_are_left_out_and_outer_frames_marked_without_a_caret() {
        let source = (1..=30).map(|line| format!("l{line}")).collect::<Vec<_>>().join("\n");
        let shown = listing(&source, &[frame(2, 1, 1), frame(20, 1, 1)]);
        assert!(shown.starts_with("  001 | l1\n> 002 | l2\n  003 | l3"), "{shown}");
        assert!(shown.contains("  007 | l7\n  ...\n  015 | l15"), "{shown}");
        assert!(
            shown.contains("> 020 | l20\n      | ^\n  021 | l21") && shown.ends_with("  025 | l25\n  ..."),
            "{shown}"
        );
    }

    #[test]
    fn a_place_that_is_not_in_the_code_marks_nothing() {
        assert_eq!(listing("x", &[frame(9, 1, 2)]), "");
        assert_eq!(listing("", &[]), "");
    }

    #[test]
    fn a_caret_stands_below_its_place_behind_tabs_too() {
        assert_eq!(listing("\tf()", &[frame(1, 2, 5)]), "> 001 | \tf()\n      | \t^^^");
    }
}
