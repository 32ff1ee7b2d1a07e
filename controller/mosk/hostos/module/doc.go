// Package module has the archives of host OS modules: it builds them reproducibly, fetches
// them, checks that they are safe and complete, unpacks them, and validates the values that
// a module is given. A module is an Ansible playbook with its files, a description of
// itself (metadata.yaml) and the JSON Schema of its values. The package knows no Kubernetes
// API and runs no playbook.
package module
