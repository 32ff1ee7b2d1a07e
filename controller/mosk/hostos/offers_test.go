package hostos

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// aged returns a list that was created some minutes after now.
func aged(name string, minutes int, modules ...kaasv1.Module) *kaasv1.HostOSConfigurationModules {
	o := list(name, modules...)
	o.UID = types.UID("uid-" + name)
	o.CreationTimestamp = metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute))
	return o
}

func levelOf(digit string) kaasv1.Module {
	return kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: strings.Repeat(digit, 64), URL: "http://192.0.2.1/" + digit}
}

// A list cannot offer a module that another list has with other content.
func TestModuleOfAnotherListIsRefused(t *testing.T) {
	const refused = `hostosconfigurationmodules.kaas.mirantis.com "second" is forbidden: spec.modules: ` +
		`HostOSConfigurationModules first has module level 1.0.0 with another sha256sum: use another version for this content`
	newer, mirrored := levelOf("2"), levelOf("1")
	newer.Version, mirrored.URL = "1.0.1", "http://192.0.2.9/level.tgz"
	leaving := aged("leaving", 0, kaasv1.Module{Name: "gone", Version: "1.0.0", SHA256Sum: strings.Repeat("1", 64)})
	leaving.DeletionTimestamp, leaving.Finalizers = &now, []string{"lab/test"}
	l := start(t, aged("first", 0, levelOf("1")), leaving)
	for _, tt := range []struct {
		name          string
		before, after *kaasv1.HostOSConfigurationModules
		want          string
	}{
		{"other content, created", list(""), list("second", levelOf("2")), refused},
		{"other content, added", list("second", newer), list("second", newer, levelOf("2")), refused},
		{"other content that was there", list("second", levelOf("2")), list("second", levelOf("2"), newer), ""},
		{"the same content", list(""), list("second", levelOf("1")), ""},
		{"the same content elsewhere", list(""), list("second", mirrored), ""},
		{"another version", list(""), list("second", newer), ""},
		{"the list itself", list("first"), list("first", levelOf("2")), ""},
		{"one of a list that is being deleted", list(""), list("second", kaasv1.Module{Name: "gone", Version: "1.0.0"}), ""},
		{"deleted", list("second", levelOf("2")), nil, ""},
	} {
		got := ""
		if err := CheckChange(t.Context(), l, nil, tt.before, tt.after); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The list that came first keeps a module where the webhook has not refused the second: the
// configuration stays as it is, and an Event and the status of the second list tell why.
func TestFirstListKeepsItsModule(t *testing.T) {
	repo := serve(t)
	b, sum := archive(t, "level", "1.0.0", "")
	other, otherSum := archive(t, "level", "1.0.0", "supportedDistributions: [debian/bookworm]\n")
	repo.files["/first"], repo.files["/second"] = b, other
	module := func(sum, path string) kaasv1.Module {
		return kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sum, URL: repo.URL + path}
	}
	// By age, not by name; of two lists of one second the first by name.
	for name, lists := range map[string][2]*kaasv1.HostOSConfigurationModules{
		"older":       {aged("z", 0, module(sum, "/first")), aged("a", 1, module(otherSum, "/second"))},
		"as old, a<b": {aged("a", 0, module(sum, "/first")), aged("b", 0, module(otherSum, "/second"))},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := lists[0], lists[1]
			l := start(t, first, second, configuration("tuning", config("level", "1.0.0", `{"level": 1}`)))
			l.load(t, second.Name)
			l.load(t, first.Name)
			got, _ := l.load(t, second.Name)
			want := "HostOSConfigurationModules " + first.Name + " has module level 1.0.0 with another sha256sum: use another version for this content"
			if s := got.Status.Modules[0]; s.State != kaasv1.ModuleError || s.Error != want {
				t.Errorf("the second list's module: %s %q, want %q", s.State, s.Error, want)
			}
			s := l.validated(t, "tuning").Configs[0]
			if s.ModulesReference != first.Name || s.ModuleHashsum != sum || s.ModuleURL != repo.URL+"/first" || s.Error != "" {
				t.Errorf("the configuration uses %+v, want the module of %s", s, first.Name)
			}
			var events corev1.EventList
			if err := l.List(t.Context(), &events); err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, e := range events.Items {
				texts = append(texts, strings.Join([]string{e.InvolvedObject.Name, e.Type, e.Reason, e.Message}, " "))
			}
			if diff := cmp.Diff([]string{second.Name + " Warning ModuleTaken " + want}, texts); diff != "" {
				t.Errorf("events after three passes (-want +got):\n%s", diff)
			}
			// The configuration does not use the second one's, and nothing replaces the first's.
			if err := CheckChange(t.Context(), l, nil, second, nil); err != nil {
				t.Errorf("deletion of the second list: %v", err)
			}
			if err := CheckChange(t.Context(), l, nil, first, nil); err == nil {
				t.Error("the first list can be deleted, and the second one's module would replace its own")
			}
			// Without the first one the second one's is free.
			if err := l.Delete(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			if got, _ := l.load(t, second.Name); got.Status.Modules[0].State != kaasv1.ModuleAvailable {
				t.Errorf("the second list's module after the first list is gone: %+v", got.Status.Modules[0])
			}
			if s := l.validated(t, "tuning").Configs[0]; s.ModuleHashsum != otherSum {
				t.Errorf("the configuration uses %+v after the first list is gone", s)
			}
		})
	}
}

// The first list's module stays that of the configuration also while it cannot be loaded, unless
// another list has the same content.
func TestListOfTheSameContentStandsIn(t *testing.T) {
	repo := serve(t)
	b, sum := archive(t, "level", "1.0.0", "")
	other, otherSum := archive(t, "level", "1.0.0", "supportedDistributions: [debian/bookworm]\n")
	repo.files["/mirror"], repo.files["/other"] = b, other
	l := start(t, aged("a", 0, kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sum, URL: repo.URL + "/none"}),
		aged("b", 1, kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: otherSum, URL: repo.URL + "/other"}),
		configuration("tuning", config("level", "1.0.0", `{"level": 1}`)))
	l.load(t, "a")
	// As before lists were compared: loaded.
	second, _ := l.load(t, "b")
	second.Status.Modules = []kaasv1.ModuleStatus{{Name: "level", Version: "1.0.0", SHA256Sum: otherSum, State: kaasv1.ModuleAvailable, PlaybookName: "main.yaml"}}
	if err := l.Status().Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if s := l.validated(t, "tuning").Configs[0]; !strings.Contains(s.Error, "of HostOSConfigurationModules a cannot be used") {
		t.Errorf("with other content in the second list: %+v", s)
	}
	if err := l.Create(t.Context(), aged("c", 2, kaasv1.Module{Name: "level", Version: "1.0.0", SHA256Sum: sum, URL: repo.URL + "/mirror"})); err != nil {
		t.Fatal(err)
	}
	l.load(t, "c")
	if s := l.validated(t, "tuning").Configs[0]; s.Error != "" || s.ModulesReference != "c" || s.ModuleHashsum != sum {
		t.Errorf("with the same content in a third list: %+v", s)
	}
}

// An entry of the vendor's index that another list has with other content is left out.
func TestIndexLeavesOutWhatAnotherListHas(t *testing.T) {
	repo := serve(t)
	l := start(t, aged("custom", 0, levelOf("1")))
	r := l.vendor(t, repo.URL+"/m/index.yaml")
	repo.files["/m/index.yaml"] = indexOf("mcc-modules", "level 1.0.0 2", "level 1.0.1 3")
	want := []string{"level 1.0.1 3 "}
	if diff := cmp.Diff(want, l.read(t, r)); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	repo.files["/m/index.yaml"] = indexOf("mcc-modules", "level 1.0.0 1", "level 1.0.1 3")
	if diff := cmp.Diff([]string{"level 1.0.0 1 ", "level 1.0.1 3 "}, l.read(t, r)); diff != "" {
		t.Errorf("modules of an index with the same content (-want +got):\n%s", diff)
	}
	if err := l.Get(t.Context(), client.ObjectKey{Name: "custom"}, list("custom")); err != nil {
		t.Errorf("the other list: %v", err)
	}
}

// The oldest list has the say, not the first by name: with its content the entry is no conflict.
func TestIndexAsksTheOldestList(t *testing.T) {
	repo := serve(t)
	l := start(t, aged("a", 1, levelOf("2")), aged("z", 0, levelOf("1")))
	r := l.vendor(t, repo.URL+"/m/index.yaml")
	repo.files["/m/index.yaml"] = indexOf("mcc-modules", "level 1.0.0 1")
	if diff := cmp.Diff([]string{"level 1.0.0 1 "}, l.read(t, r)); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
}
