//! What a store answers, beside the lists that `rusty-s3` reads.

use std::path::{Component, Path};

/// Reads the code and the message of a refusal. A store, or a proxy before it, that says neither has empty ones.
pub fn read_refusal(body: &str) -> (String, String) {
    let element = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        let (text, _) = rest.split_once(&format!("</{name}>"))?;
        let plain = text.chars().filter(|c| !c.is_control() && *c != '<').take(200);
        Some(plain.collect::<String>().trim().to_owned())
    };
    (element("Code").unwrap_or_default(), element("Message").unwrap_or_default())
}

/// Returns the path below the experiment's directory that a key stands for; none where it leads elsewhere.
pub fn relative_name<'a>(key: &'a str, folder: &str) -> Option<&'a str> {
    let name = key.strip_prefix(folder)?.strip_prefix('/')?;
    // `a//b` and `a/` have components that a path does not show.
    let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
        && !name.contains('\0');
    plain.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_a_code_and_a_message() {
        let body = "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not \
                    exist</Message><BucketName>x</BucketName></Error>";
        let read = read_refusal(body);
        assert_eq!(read, ("NoSuchBucket".to_owned(), "The specified bucket does not exist".to_owned()));
        assert_eq!(read_refusal("<html>502</html>"), Default::default());
        assert_eq!(read_refusal("<Code>a\u{1b}[2J"), Default::default());
        assert_eq!(read_refusal("<Code>a\u{1b}[2J</Code>").0, "a[2J");
    }

    #[test]
    fn a_key_leads_nowhere_but_into_its_folder() {
        assert_eq!(relative_name("n/d/runs/a/run.json", "n/d"), Some("runs/a/run.json"));
        for key in ["n/d/", "n/d", "n/dx/a", "n/d/../a", "n/d//etc/passwd", "n/d/a/", "n/d/./a", "n/d/a\0"] {
            assert_eq!(relative_name(key, "n/d"), None, "{key}");
        }
    }
}
