#!/bin/sh
# release.sh VERSION DIR: makes what a release has: for each platform an archive with
# the three static programs, SHA256SUMS, and, where a container engine answers, an
# image with the version as its tag. The same commit makes the same archives.
# PLATFORMS selects platforms: "linux/amd64 linux/arm64" by default.
set -eu
version=$1 dir=$2
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
export LDFLAGS="-X github.com/metalab-dev/metalab/version.release=$version"
commit=$(git log -1 --format=%ct)
rm -rf "$dir"
mkdir -p "$dir"
for platform in ${PLATFORMS:-linux/amd64 linux/arm64}; do
  GOOS=${platform%/*} GOARCH=${platform#*/}
  export GOOS GOARCH
  name=metalab-$version-$GOOS-$GOARCH
  echo "$name"
  cmd/build.sh "$dir/$name" -trimpath
  cp README.md LICENSE "$dir/$name/"
  tar -C "$dir" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$commit" -cf - "$name" | gzip -9n >"$dir/$name.tar.gz"
done
unset GOOS GOARCH
# The manifests, with the version as the image's tag.
name=metalab-$version-manifests
cp -r controller/config "$dir/$name"
rm -f "$dir/$name"/*.go
sed -i -e "s|^\( *newTag:\) .*|\1 $version|" -e "s|^\(tag:\) .*|\1 $version|" "$dir/$name/kustomization.yaml" "$dir/$name/racks/kustomization.yaml" "$dir/$name/chart/values.yaml"
tar -C "$dir" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$commit" -cf - "$name" | gzip -9n >"$dir/$name.tar.gz"
(cd "$dir" && sha256sum -- *.tar.gz >SHA256SUMS && cat SHA256SUMS)
image=$dir/metalab-$version-linux-$(${GO:-go} env GOHOSTARCH)
if [ -d "$image" ] && ${DOCKER:-docker} info >/dev/null 2>&1; then
  ${DOCKER:-docker} build -q -t "${IMAGE:-metalab}:$version" -f cmd/Dockerfile "$image"
else
  echo "no image: ${DOCKER:-docker} does not answer, or this platform is not built"
fi
