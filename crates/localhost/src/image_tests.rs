use crate::image::*;
use crate::storage::{copy_folder, mounts_below, whole_disks};
use std::path::Path;

/// Runs `test` on a mounted image, or says why not.
#[expect(clippy::print_stderr, reason = "the test script counts these lines")]
fn on_image(json: &str, test: impl FnOnce(&Machine, &Image)) {
    let machine = Machine::default();
    let folder = tempfile::tempdir().unwrap();
    let spec: ImageSpec = serde_json::from_str(json).unwrap();
    let mut journal = Journal::open(&folder.path().join("home"), &machine).unwrap();
    let work_dir = folder.path().join("home");
    match mount_image(&machine, &spec, folder.path(), &work_dir, &mut journal) {
        Ok(image) => test(&machine, &image),
        Err(LocalError::NotPermitted { what, why, .. }) => eprintln!("SKIPPED: image {json}: {what}: {why}"),
        Err(error) => panic!("{error}"),
    }
    journal.undo_all().unwrap();
    assert!(mounts_below(&machine, folder.path()).unwrap().is_empty());
    let left =
        run(&machine, "losetup", &["--list", "--noheadings", "--output", "BACK-FILE"]).unwrap_or_default();
    assert!(!left.contains(&folder.path().display().to_string()), "{left}");
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(names, ["home"], "image files are gone");
    assert!(!work_dir.join("mount").exists());
}

fn mounted_as(machine: &Machine, point: &Path) -> crate::machine::Mount {
    machine.mounts().unwrap().into_iter().find(|mount| mount.point == point).unwrap()
}

#[test]
fn xfs_in_a_file() {
    on_image(r#"{"filesystem": "xfs", "size": "320MiB"}"#, |machine, image| {
        assert_eq!(mounted_as(machine, &image.point).kind, "xfs");
        // A disk of its own, whose I/O can be limited.
        assert!(whole_disks(machine, &image.point)[0].starts_with("7:"));
    });
}

#[test]
fn ext4_in_a_file_with_options_of_its_own() {
    on_image(
        r#"{"filesystem": "ext4", "size": "32MiB", "mount_options": ["noatime", "data=writeback"]}"#,
        |machine, image| {
            let mount = mounted_as(machine, &image.point);
            assert!(
                mount.kind == "ext4" && mount.options.contains(&"data=writeback".to_owned()),
                "{mount:?}"
            );
            fs::create_dir(image.point.join("d")).unwrap();
            fs::write(image.point.join("d/f"), "text").unwrap();
            copy_folder(machine, &image.point.join("d"), &image.point.join("e"), None).unwrap();
            assert_eq!(fs::read_to_string(image.point.join("e/f")).unwrap(), "text");
        },
    );
}

#[test]
fn btrfs_striped_over_three_files() {
    on_image(r#"{"filesystem": "btrfs", "size": "128MiB", "members": 3}"#, |machine, image| {
        assert_eq!(mounted_as(machine, &image.point).kind, "btrfs");
        assert_eq!(image.devices.len(), 3);
        assert_eq!(whole_disks(machine, &image.point).len(), 3, "limits hold on each");
        let profile =
            run(machine, "btrfs", &["filesystem", "df", &image.point.display().to_string()]).unwrap();
        assert!(profile.contains("Data, RAID0"), "{profile}");
    });
}

#[test]
fn xfs_striped_by_md_where_the_kernel_can() {
    on_image(r#"{"filesystem": "xfs", "size": "320MiB", "members": 2}"#, |machine, image| {
        assert_eq!(mounted_as(machine, &image.point).kind, "xfs");
    });
}

#[test]
fn without_md_striping_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine { proc: folder.path().join("proc"), ..Machine::default() };
    let spec: ImageSpec =
        serde_json::from_str(r#"{"filesystem": "xfs", "size": "320MiB", "members": 2}"#).unwrap();
    let mut journal = Journal::open(&folder.path().join("home"), &machine).unwrap();
    let error =
        mount_image(&machine, &spec, folder.path(), folder.path(), &mut journal).unwrap_err().to_string();
    assert!(error.contains("no md driver") && error.contains("btrfs stripes by itself"), "{error}");
    assert!(journal.is_clear());
}

#[test]
fn an_image_that_does_not_fit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let spec: ImageSpec = serde_json::from_str(r#"{"filesystem": "ext4", "size": "4000000GiB"}"#).unwrap();
    let error = room(folder.path(), &spec).unwrap_err().to_string();
    assert!(error.contains("do not fit"), "{error}");
}
