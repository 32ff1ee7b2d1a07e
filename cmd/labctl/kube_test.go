package main

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
	"github.com/metalab-dev/metalab/scenarios/smalldisk"
)

// A Kubernetes API alone refuses changes on a full disk, with the two figures, and goes on when
// there is room; it does not start where there is none.
func TestKubeOnAFullDisk(t *testing.T) {
	prerequisites.Need(t, "small file system")
	smalldisk.Run(t, 256<<20, func(dir string) {
		o := &options{state: filepath.Join(dir, "api")}
		ctx, stop := context.WithCancel(t.Context())
		r, w := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			err := runKube(ctx, o, "", w, io.Discard)
			w.CloseWithError(err)
			ended <- err
		}()
		kubeconfig, err := bufio.NewReader(r).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		api, err := kubeClient(strings.TrimSpace(kubeconfig))
		if err != nil {
			t.Fatal(err)
		}
		create := func(name string) error {
			return api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: name}})
		}
		if err := create("before-"); err != nil {
			t.Fatal(err)
		}
		empty := smalldisk.Fill(t, dir, 0)
		var failed error
		patience.Await(t, "the API notices", func() bool { // etcd may notice first, and knows no figures
			failed = create("later-")
			return failed != nil && strings.Contains(failed.Error(), "no space left") && strings.Contains(failed.Error(), "are free") && strings.Contains(failed.Error(), "are needed")
		}, &failed)
		empty()
		patience.Await(t, "there is space", func() bool { failed = create("later-"); return failed == nil }, &failed)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("runKube() = %v", err)
		}

		smalldisk.Fill(t, dir, 0)
		err = runKube(t.Context(), &options{state: filepath.Join(dir, "other")}, "", io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "no space left") || !strings.Contains(err.Error(), "are needed") {
			t.Errorf("runKube() on a full disk = %v, want the two figures", err)
		}
	})
}

// A lab that begins on a full disk is refused with how much is free and how much it needs, not
// with the first file that could not be written.
func TestUpOnAFullDisk(t *testing.T) {
	prerequisites.Need(t, "small file system")
	smalldisk.Run(t, 64<<20, func(dir string) {
		smalldisk.Fill(t, dir, 0)
		got := labctl(t, filepath.Join(dir, "lab"), "up", "--no-kube", "--hosts", "1")
		for _, want := range []string{"no space left on the file system of " + dir, "are free", "are needed"} {
			if got.status != 1 || !strings.Contains(got.err, want) {
				t.Errorf("labctl up = %+v, want status 1 and %q", got, want)
			}
		}
	})
}
