//! The workload of a run in one line of words.

use crate::html::text::format_whole;
use dyno_rundir::schema::{Phase, Setting};
use dyno_types::units::{Rate, counted};

/// Operations by their share, in the order in which they are told.
const MIX: [(&str, &str); 6] = [
    ("readproportion", "reads"),
    ("updateproportion", "updates"),
    ("insertproportion", "inserts"),
    ("scanproportion", "scans"),
    ("readmodifywriteproportion", "read-modify-writes"),
    ("deleteproportion", "deletes"),
];

/// `50 % reads, 50 % updates, 100,000 × 1 KB, zipfian, 64 connections`; as much of it as the settings say.
pub fn describe_workload(settings: &[Setting], phase: Option<&Phase>) -> String {
    let text = |key: &str| settings.iter().find(|one| one.key == key).map(|one| one.value.as_str());
    let number = |key: &str| text(key)?.parse::<f64>().ok();
    let mut parts: Vec<String> = Vec::new();
    for (key, what) in MIX {
        if let Some(share) = number(key).filter(|share| *share > 0.0) {
            parts.push(format!("{} % {what}", Rate(share * 100.0)));
        }
    }
    if let (Some(records), Some(fields), Some(length)) =
        (number("recordcount"), number("fieldcount"), number("fieldlength"))
    {
        let bytes = fields * length;
        let size = if bytes >= 1_000.0 { format!("{} KB", Rate(bytes / 1e3)) } else { format!("{bytes} B") };
        parts.push(format!("{} × {size}", format_whole(records)));
    } else if let Some(records) = number("recordcount").filter(|records| *records > 0.0) {
        parts.push(format!("{} records", format_whole(records)));
    }
    parts.extend(text("requestdistribution").map(str::to_owned));
    if let Some(phase) = phase {
        let users = phase.client.users * phase.client.pipeline.max(1);
        parts.extend(match phase.offered {
            Some(_) => Some(counted(phase.client.users, "connection")),
            None => (users > 0).then(|| counted(users, "user")),
        });
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_left_out() {
        let setting =
            |key: &str, value: &str| Setting { key: key.into(), value: value.into(), source: "file".into() };
        let all = [
            setting("readproportion", "0.95"),
            setting("updateproportion", "0.05"),
            setting("scanproportion", "0"),
            setting("recordcount", "100000"),
            setting("fieldcount", "10"),
            setting("fieldlength", "100"),
            setting("requestdistribution", "zipfian"),
        ];
        assert_eq!(describe_workload(&all, None), "95 % reads, 5 % updates, 100,000 × 1 KB, zipfian");
        assert_eq!(describe_workload(&all[..4], None), "95 % reads, 5 % updates, 100,000 records");
        assert_eq!(describe_workload(&all[..1], None), "95 % reads");
        assert_eq!(describe_workload(&[], None), "");
    }
}
