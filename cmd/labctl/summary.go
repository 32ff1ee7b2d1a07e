package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/lab"
)

// summary prints the summary and, with --view, the link of the lab's page.
func (f *upFlags) summary(ctx context.Context, o *options, out io.Writer) error {
	if err := summary(ctx, o, out); err != nil || !f.view || !o.output.text() {
		return err
	}
	st, err := control.NewClient(o.state).Status(ctx)
	if err == nil && st.View != "" {
		_, err = fmt.Fprintf(out, "\nThe racks in a browser: %s\n", st.View)
	}
	return err
}

// summary prints what labctl up has started and what to try.
func summary(ctx context.Context, o *options, out io.Writer) error {
	st, hosts, err := inspect(ctx, o)
	if err != nil {
		return err
	}
	if !o.output.text() {
		return o.output.print(out, st, nil)
	}
	fmt.Fprintf(out, "\nThe lab is up, at speed %s. Its BMCs:\n\n", st.Speed)
	shown := hosts[:min(len(hosts), 10)]
	rows := [][]string{{"NAME", "=REDFISH", "?IPMI", "USER", "PASSWORD"}}
	for _, h := range shown {
		rows = append(rows, []string{h.Name, h.Redfish, ipmiAddress(h), h.Username, h.Password})
	}
	if err := table.print(out, nil, rows); err != nil {
		return err
	}
	if n := len(hosts) - len(shown); n > 0 {
		o.say(out, "and %d more: labctl hosts\n", n)
	}
	if len(hosts) == 0 {
		return nil
	}
	command := os.Args[0] + o.labFlags() // as the user called it
	fmt.Fprintf(out, "\nCertificate authority of the BMCs: %s\n", hosts[0].CAFile)
	fmt.Fprintf(out, "  curl --cacert %s -u %s:%s %s\n", hosts[0].CAFile, hosts[0].Username, hosts[0].Password, hosts[0].Redfish)
	if st.Kubeconfig == "" {
		return nil
	}
	name := hosts[0].Name
	fmt.Fprintf(out, `
Kubernetes API: export KUBECONFIG=%[1]s
  %[2]s kubectl apply -f %[3]s
  %[2]s kubectl wait bmh/%[4]s --for=jsonpath='{.status.provisioning.state}'=available --timeout=10m
  %[2]s kubectl patch bmh/%[4]s --type=merge -p '{"spec":{"image":{"url":"%[5]s","checksum":"%[5]s.sha256","checksumType":"sha256","format":"raw"}}}'
  %[2]s kubectl get bmh -w
`, st.Kubeconfig, command, filepath.Join(o.state, lab.HostsFile), name, st.Images+lab.DemoImage)
	if st.Charts != "" {
		fmt.Fprintf(out, "\nHelm charts: %s, those of %s among them\n", st.Charts, filepath.Join(o.state, lab.ChartsDir))
	}
	return nil
}
