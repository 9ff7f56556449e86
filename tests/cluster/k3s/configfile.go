package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

const configFile = "/etc/rancher/k3s/config.yaml"

// configPath is the file that the arguments or the environment name.
func configPath(arguments []string) string {
	if path := os.Getenv("K3S_CONFIG_FILE"); path != "" {
		return path
	}
	for number, argument := range arguments {
		for _, name := range []string{"--config", "-c"} {
			if argument == name && number+1 < len(arguments) {
				return arguments[number+1]
			}
			if value, found := strings.CutPrefix(argument, name+"="); found {
				return value
			}
		}
	}
	return configFile
}

// withConfig puts the settings of files before the arguments, which thus take precedence. For a server, unknown keys are left out with a warning; for an
// agent K3s keeps no list of its flags, and an unknown key ends it as an unknown flag does.
func withConfig(command string, options []option, arguments []string) ([]string, error) {
	found, err := configArguments(configPath(arguments))
	if err != nil {
		return nil, err
	}
	if command != "server" && command != "etcd-snapshot" {
		return append(found, arguments...), nil
	}
	known := &settings{options: options}
	var kept []string
	for _, argument := range found {
		name, _, _ := strings.Cut(argument, "=")
		if known.option(strings.TrimLeft(name, "-")) == nil {
			warn("Unknown flag %s found in config.yaml, skipping\n", name)
			continue
		}
		kept = append(kept, argument)
	}
	return append(kept, arguments...), nil
}

// configArguments reads the file and then those of its folder in the order of their names, as arguments. A later file replaces a key, unless it ends with
// a plus sign: then its values are added.
func configArguments(path string) ([]string, error) {
	var order []string
	values := map[string][]string{}
	for _, file := range configFiles(path) {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var document yaml.Node
		if err := yaml.Unmarshal(content, &document); err != nil {
			return nil, err
		}
		if len(document.Content) == 0 {
			continue
		}
		pairs := document.Content[0]
		if pairs.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("yaml: unmarshal errors:\n  line %d: cannot unmarshal into yaml.MapSlice", pairs.Line)
		}
		for number := 0; number+1 < len(pairs.Content); number += 2 {
			key, added := strings.CutSuffix(pairs.Content[number].Value, "+")
			if _, seen := values[key]; !seen {
				order = append(order, key)
			}
			given := valuesOf(pairs.Content[number+1])
			if added {
				given = append(append([]string{}, values[key]...), given...)
			}
			values[key] = given
		}
	}
	var arguments []string
	for _, key := range order {
		prefix := "--"
		if len(key) == 1 {
			prefix = "-"
		}
		for _, value := range values[key] {
			arguments = append(arguments, prefix+key+"="+value)
		}
	}
	return arguments, nil
}

func configFiles(path string) []string {
	var files []string
	if _, err := os.Stat(path); err == nil {
		files = append(files, path)
	}
	entries, _ := os.ReadDir(path + ".d")
	sort.Slice(entries, func(one, other int) bool { return entries[one].Name() < entries[other].Name() })
	for _, entry := range entries {
		suffix := strings.ToLower(filepath.Ext(entry.Name()))
		if !entry.IsDir() && (suffix == ".yaml" || suffix == ".yml") {
			files = append(files, filepath.Join(path+".d", entry.Name()))
		}
	}
	return files
}

func valuesOf(node *yaml.Node) []string {
	if node.Kind != yaml.SequenceNode {
		return []string{node.Value}
	}
	values := []string{}
	for _, item := range node.Content {
		values = append(values, item.Value)
	}
	return values
}
