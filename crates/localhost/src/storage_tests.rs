use crate::storage::*;

#[test]
fn copies_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    fs::create_dir_all(from.join("sub")).unwrap();
    fs::write(from.join("sub/a"), "1234").unwrap();
    fs::write(from.join("b"), "").unwrap();
    let machine = Machine::default();
    copy_folder(&machine, &from, &to, None).unwrap();
    assert_eq!(contents(&to).unwrap(), (2, 4));
    assert!(copy_folder(&machine, &from, &to, None).is_err(), "a copy is not put into another");
    empty_folder(&to).unwrap();
    assert_eq!(contents(&to).unwrap(), (0, 0));
}

#[test]
fn caches_are_dropped_by_a_file_of_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine { proc: folder.path().to_owned(), ..Machine::default() };
    let error = drop_caches(&machine).unwrap_err().to_string();
    assert!(error.contains("dropping caches") && error.contains("page cache holds"), "{error}");
    fs::create_dir_all(folder.path().join("sys/vm")).unwrap();
    drop_caches(&machine).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("sys/vm/drop_caches")).unwrap(), "3");
}
