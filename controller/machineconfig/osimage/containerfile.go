// Package osimage makes the image of an operating system of a base image, a rendered
// MachineConfig and the instructions of a Containerfile: its layers, its labels and its digest.
// The same input gives the same digest.
//
// It reads no object of the API and knows no Job: controller/machineconfig/builder does. It
// starts no program.
package osimage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// Names of the stages that precede the user's content. Content builds on StageConfigs.
const (
	StageExtract = "extract"
	StageConfigs = "configs"
)

// Labels of an image.
const (
	LabelConfig = "machineconfig"
	LabelPool   = "machineconfigpool"
	LabelBase   = "baseOSContainerImage"
)

// ConfigFile is where an image has the MachineConfig that it was built of.
const ConfigFile = "etc/machine-config-daemon/currentconfig"

// ContextConfig is the file of the build's context that has the MachineConfig: JSON that is
// compressed with gzip and then encoded in base64.
const ContextConfig = "machineconfig/machineconfig.json.gz"

// divider separates the stages of the controller from the user's content.
const divider = "# The content of the MachineOSConfig follows.\n"

// Recipe is the parsed input of an image.
type Recipe struct {
	Base    string // pullspec of the base image
	Config  string // name of the rendered MachineConfig
	Pool    string
	Content string // the user's instructions; "" adds nothing
}

// Containerfile returns the Containerfile of a recipe. A builder with a shell executes all of
// it; the lab's does what the stages extract and configs say without one.
func (r Recipe) Containerfile() string {
	content := r.Content
	if strings.TrimSpace(content) == "" {
		content = "FROM " + StageConfigs + " AS final\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "FROM %s AS %s\n", r.Base, StageExtract)
	fmt.Fprintf(&b, "COPY ./%s /tmp/machineconfig.json.gz\n", ContextConfig)
	fmt.Fprintf(&b, "RUN mkdir -p /etc/machine-config-daemon && base64 -d /tmp/machineconfig.json.gz | gunzip > /%s\n", ConfigFile)
	fmt.Fprintf(&b, "FROM %s AS %s\n", r.Base, StageConfigs)
	fmt.Fprintf(&b, "COPY --from=%s /%s /%s\n", StageExtract, ConfigFile, ConfigFile)
	b.WriteString("RUN machine-config-daemon firstboot-complete-machineconfig --image-build && ostree container commit\n")
	fmt.Fprintf(&b, "LABEL %s=%s %s=%s %s=%s\n", LabelConfig, r.Config, LabelPool, r.Pool, LabelBase, r.Base)
	b.WriteString(divider)
	b.WriteString(content)
	if !strings.HasSuffix(content, "\n") {
		b.WriteByte('\n')
	}
	return b.String()
}

// maxContainerfile is how many bytes a Containerfile may have: four entries of 4096 characters,
// and the stages of the controller.
const maxContainerfile = 64 << 10

// split returns the stages of the controller and those of the user. Both are one parse, because
// content may go on with the last stage of the controller.
func split(text string) (stages []instructions.Stage, userLine int, err error) {
	if len(text) > maxContainerfile {
		return nil, 0, fmt.Errorf("Containerfile has %d bytes: at most %d are allowed", len(text), maxContainerfile)
	}
	before, _, found := strings.Cut(text, divider)
	if !found {
		return nil, 0, errors.New("Containerfile lacks the stages of the controller")
	}
	if stages, err = parse(text); err != nil {
		return nil, 0, err
	}
	return stages, strings.Count(before, "\n") + 2, nil
}

func parse(text string) ([]instructions.Stage, error) {
	result, err := parser.Parse(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	stages, args, err := instructions.Parse(result.AST, nil)
	if err != nil {
		return nil, err
	}
	if len(args) > 0 {
		return nil, errors.New("ARG before FROM is not supported: write the value")
	}
	return stages, nil
}

// CheckSyntax returns an error when a Containerfile cannot be parsed. A builder is not needed to
// find that out.
func CheckSyntax(containerfile string) error {
	if _, _, err := split(containerfile); err != nil {
		return fmt.Errorf("invalid Containerfile: %w", err)
	}
	return nil
}
