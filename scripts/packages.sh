# To be sourced: packages of the host's distribution, unpacked into a folder without being installed.
#
# The mirror is the one that the host's sources of apt name; signatures are checked with the host's keys. The host's own lists of
# packages stay as they are.

# unpack_packages SUITE FOLDER PACKAGE...: unpacks packages of the host's release (SUITE is empty) or of its backports (SUITE is
# -backports) into FOLDER.
unpack_packages() (
  set -eu
  suite=$1 folder=$2
  shift 2
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # The user that apt downloads with must be able to read it.
  chmod 755 "$work"
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/packages" "$folder"
  # Without what the lists say, which a fresh host does not have yet.
  # shellcheck disable=SC2016
  apt-get indextargets --no-release-info --format '$(RELEASE) $(REPO_URI) $(COMPONENT)' 'Created-By: Packages' |
    awk -v codename="$codename" -v suite="$suite" '$1 == codename { print "deb", $2, codename suite, $3 }' |
    sort -u >"$work/sources.list"
  [ -s "$work/sources.list" ] || { echo "the sources of apt do not name $codename"; exit 1; }
  apt() {
    apt-get -q -o Acquire::http::Timeout=20 -o Acquire::Retries=0 -o Dir::State="$work/state" -o Dir::Cache="$work/cache" \
      -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null "$@"
  }
  apt update
  cd "$work/packages"
  apt download "$@"
  for package in *.deb; do
    dpkg-deb -x "$package" "$folder"
  done
)
