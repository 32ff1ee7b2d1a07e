package steps

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cucumber/godog"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/metalab-dev/metalab/lab"
)

// registerKubectl binds the steps that run upstream's kubectl.
func (s *scenario) registerKubectl(sc *stepRegistry) {
	sc.Step(`^the operator runs kubectl ([^:]+)$`, "runs upstream's kubectl, in which SERVER stands for the server's name, and asserts that it succeeds",
		func(ctx context.Context, args string) error { return s.runKubectl(ctx, args, "") })
	sc.Step(`^the operator runs kubectl ([^:]+):$`, "runs kubectl, in which FILE stands for a file with this content",
		func(ctx context.Context, args string, in *godog.DocString) error {
			return s.runKubectl(ctx, args, in.Content)
		})
	sc.Step(`^the operator fails to run kubectl ([^:]+):$`, "runs kubectl, in which FILE stands for a file with this content, and asserts that it fails",
		func(ctx context.Context, args string, in *godog.DocString) error {
			if err := s.runKubectl(ctx, args, in.Content); err == nil {
				return fmt.Errorf("kubectl %s succeeded: %s", args, s.kubectlOutput)
			}
			return nil
		})
	sc.Step(`^kubectl prints (.+)$`, "asserts that kubectl has printed this text, whatever the white space", s.kubectlPrinted)
}

// oneKubectl serialises runs of kubectl, which reports failures through a variable
// of its package.
var oneKubectl sync.Mutex

// kubectlFailed is the panic that ends kubectl when it fails.
type kubectlFailed struct{ text string }

// runKubectl runs kubectl. Its arguments are separated by blanks; single quotes
// keep blanks within one.
func (s *scenario) runKubectl(ctx context.Context, line, in string) (err error) {
	oneKubectl.Lock()
	defer oneKubectl.Unlock()
	kubeconfig := filepath.Join(s.dir, "kube", "kubeconfig")
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &kubeconfig
	cache := filepath.Join(s.dir, "kubectl")
	flags.CacheDir = &cache
	var out bytes.Buffer
	file := filepath.Join(s.dir, "kubectl.yaml")
	named := strings.NewReplacer("SERVER", s.server.Name, "NAMESPACE", lab.Namespace, "FILE", file)
	if err := os.WriteFile(file, []byte(named.Replace(in)), 0o600); err != nil {
		return err
	}
	command := cmd.NewKubectlCommand(cmd.KubectlOptions{
		ConfigFlags: flags,
		IOStreams:   genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out},
	})
	command.SetArgs(words(named.Replace(line)))
	command.SetOut(&out)
	command.SetErr(&out)
	util.BehaviorOnFatal(func(text string, _ int) { panic(kubectlFailed{text}) })
	defer util.DefaultBehaviorOnFatal()
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case kubectlFailed:
			out.WriteString(failed.text)
			err = fmt.Errorf("kubectl %s: %s", line, failed.text)
		default:
			panic(failed)
		}
		s.kubectlOutput = out.String()
	}()
	return command.ExecuteContext(ctx)
}

// words splits a line at blanks outside single quotes.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

func (s *scenario) kubectlPrinted(text string) error {
	text = strings.ReplaceAll(text, "SERVER", s.server.Name)
	if !strings.Contains(strings.Join(strings.Fields(s.kubectlOutput), " "), strings.Join(strings.Fields(text), " ")) {
		return fmt.Errorf("kubectl has printed %q", s.kubectlOutput)
	}
	return nil
}
