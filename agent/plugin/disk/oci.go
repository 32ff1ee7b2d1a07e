package disk

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/metalab-dev/metalab/agent/job"
)

// Media types of manifests (OCI image specification 1.1; Docker image manifest
// version 2, schema 2).
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	typeDocker   = "application/vnd.docker.distribution.manifest.v2+json"
	typeEmpty    = "application/vnd.oci.empty.v1+json" // layer of artifacts without a layer
)

var manifestTypes = strings.Join([]string{typeManifest, typeIndex, typeDocker, typeList}, ", ")

// descriptor references a blob or a manifest.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
	Platform    *struct {
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// manifest holds the fields that the agent reads of a manifest or an index.
type manifest struct {
	MediaType string       `json:"mediaType"`
	Manifests []descriptor `json:"manifests"`
	Layers    []descriptor `json:"layers"`
}

// goArch maps architectures of uname -m to those of registries, if they differ.
var goArch = map[string]string{"x86_64": "amd64", "aarch64": "arm64", "i686": "386", "armv7l": "arm"}

// blob is an image's blob with its format.
type blob struct {
	url      *url.URL
	want     digest
	size     int64
	wrapping layerFormat
	registry *registry
}

// resolve returns the blob of an image reference: the single layer of its
// manifest, which an index may choose by architecture.
func (w Writer) resolve(ctx context.Context, spec job.WriteSpec) (blob, error) {
	ref, err := parseReference(spec.URL)
	if err != nil {
		return blob{}, err
	}
	if strings.TrimSpace(spec.Checksum) != "" { // B-151
		return blob{}, errors.New("disk: checksum must be empty for OCI images: the registry tells it")
	}
	g := &registry{http: w.client(true), ref: ref, auth: spec.Registry}
	what := ref.tag
	if ref.digest != "" {
		what = ref.digest
	}
	doc, err := g.manifest(ctx, what, ref.digest)
	if err != nil {
		return blob{}, err
	}
	if len(doc.Manifests) > 0 {
		chosen, err := choosePlatform(doc.Manifests, w.System.Arch())
		if err != nil {
			return blob{}, err
		}
		if doc, err = g.manifest(ctx, chosen.Digest, chosen.Digest); err != nil {
			return blob{}, err
		}
	}
	layer, err := oneLayer(doc)
	if err != nil {
		return blob{}, err
	}
	want, err := parseOCIDigest(layer.Digest)
	if err != nil {
		return blob{}, fmt.Errorf("disk: oci: layer: %w", err)
	}
	wrapping, err := layerFormatOf(layer.MediaType)
	if err != nil {
		return blob{}, err
	}
	return blob{url: g.url("blobs", layer.Digest), want: want, size: layer.Size, wrapping: wrapping, registry: g}, nil
}

// manifest fetches a manifest or index, and checks its digest if the reference has
// one.
func (g *registry) manifest(ctx context.Context, what, pinned string) (manifest, error) {
	if pinned != "" {
		if _, err := parseOCIDigest(pinned); err != nil {
			return manifest{}, fmt.Errorf("disk: oci: manifest: %w", err)
		}
	}
	body, header, err := g.fetchDocument(ctx, "manifests", what, manifestTypes, maxManifest)
	if err != nil {
		return manifest{}, err
	}
	if pinned != "" {
		want, err := parseOCIDigest(pinned)
		if err != nil {
			return manifest{}, err
		}
		h := want.make()
		h.Write(body)
		if have := hex.EncodeToString(h.Sum(nil)); have != want.hex {
			return manifest{}, fmt.Errorf("disk: checksum mismatch: the manifest of %s has %s %s, want %s", redactURL(g.url("manifests", what)), want.name, have, want.hex)
		}
	}
	return parseManifest(body, header.Get("Content-Type"))
}

func parseManifest(body []byte, contentType string) (manifest, error) {
	var doc manifest
	if err := json.Unmarshal(body, &doc); err != nil {
		return manifest{}, fmt.Errorf("disk: oci: manifest: %w", err)
	}
	kind := doc.MediaType
	if kind == "" {
		kind, _, _ = strings.Cut(contentType, ";")
	}
	switch strings.TrimSpace(kind) {
	case typeIndex, typeList:
		if len(doc.Manifests) == 0 {
			return manifest{}, errors.New("disk: oci: the index names no manifest")
		}
		doc.Layers = nil
	case typeManifest, typeDocker:
		doc.Manifests = nil
	default:
		return manifest{}, fmt.Errorf("disk: oci: a manifest of type %q is not supported", shortened(kind))
	}
	return doc, nil
}

// diskTypes lists the annotations for the disk format of a manifest (Podman and
// Ironic: disktype), the cheapest to write first.
var diskTypes = []string{"raw", "qcow2", "applehv", ""}

// choosePlatform returns the manifest for an architecture; among several the one
// whose format is best to write.
func choosePlatform(all []descriptor, arch string) (descriptor, error) {
	want := arch
	if name, ok := goArch[arch]; ok {
		want = name
	}
	for _, disk := range diskTypes {
		for _, d := range all {
			fits := d.Platform == nil || d.Platform.Architecture == "" || d.Platform.Architecture == want || d.Platform.Architecture == arch
			if fits && d.Annotations["disktype"] == disk && d.MediaType != typeIndex && d.MediaType != typeList {
				return d, nil
			}
		}
	}
	return descriptor{}, fmt.Errorf("disk: oci: none of the index's %d manifests is of a disk for %s", len(all), arch)
}

func oneLayer(m manifest) (descriptor, error) {
	var layers []descriptor
	for _, l := range m.Layers {
		if l.MediaType != typeEmpty {
			layers = append(layers, l)
		}
	}
	switch {
	case len(m.Manifests) > 0:
		return descriptor{}, errors.New("disk: oci: an index within an index is not supported")
	case len(layers) != 1:
		return descriptor{}, fmt.Errorf("disk: oci: the manifest has %d layers, want one that is a disk image", len(layers))
	case layers[0].Size <= 0:
		return descriptor{}, fmt.Errorf("disk: oci: a layer of %d bytes is not allowed", layers[0].Size)
	}
	return layers[0], nil
}

// layerFormat is how an image is packed in a layer.
type layerFormat struct {
	packed string // gzip or zstd; "" if it is not compressed
	tar    bool
}

// layerFormatOf returns the format for a layer's media type: a tar, or else a disk
// image.
func layerFormatOf(mediaType string) (layerFormat, error) {
	kind := strings.ToLower(mediaType)
	var w layerFormat
	for _, p := range []struct{ suffix, packed string }{
		{"+gzip", "gzip"}, {".gzip", "gzip"}, {"/gzip", "gzip"}, {"/x-gzip", "gzip"}, {"+zstd", "zstd"}, {".zstd", "zstd"}, {"/zstd", "zstd"},
	} {
		if cut, ok := strings.CutSuffix(kind, p.suffix); ok {
			kind, w.packed = cut, p.packed
			break
		}
	}
	if strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "/json") {
		return layerFormat{}, fmt.Errorf("disk: oci: a layer of type %q is no disk image", shortened(mediaType))
	}
	w.tar = strings.HasSuffix(kind, ".tar") || strings.HasSuffix(kind, "/tar") || strings.HasSuffix(kind, "/x-tar")
	return w, nil
}
