# hwaccel.gpu: everything that a user or a contributor starts. The recipes only name what tests/tools does.
# Variables: FLEET=path of a fleet file, POOLS=declared for its pools as an inventory declares them (demo), PYTHON=another Python (3.11 or newer),
# REPOSITORY=address of the source (dist), PART=a part of soak, BASE=a commit that test-changed compares with, ARGS=more arguments for ansible-playbook (demo) or pytest (test-unit, test-live).
SHELL := /bin/sh
PY := tests/tools/python
IN := $(PY) tests/tools/environments.py run
.DEFAULT_GOAL := help
.PHONY: demo demo-down test test-changed test-unit test-live test-node test-boot test-cluster test-openshift lint bench soak soak-table soak-record tree docs upstream costs dist fresh help

demo: tree ## Sandbox with a GPU fleet, then site on it, then a table; again: changed=0 (FLEET=path takes another fleet)
	@$(IN) demo -- python tests/tools/demo.py up $(if $(FLEET),--fleet "$(abspath $(FLEET))") $(if $(POOLS),--pools "$(POOLS)") $(if $(ARGS),--options "$(ARGS)")

demo-down: tree ## Take down what demo set up, every trace of it but the cache
	@$(IN) demo -- python tests/tools/demo.py down
	@rm -rf .build

test: tree ## Everything: lint, unit, sanity, live, molecule, demo twice, on every supported core that can be had
	@$(PY) tests/tools/check.py all

test-changed: tree ## Jobs of make test that have an input which differs from origin/main (BASE=another commit): for the inner loop
	@$(PY) tests/tools/check.py all --changed $(BASE)

test-unit: tree ## Tests that need no server (seconds)
	@$(IN) core-2.19 -- python -m pytest tests/unit -m "not slow" $(ARGS)

test-live: tree ## Tests against the sandbox's control plane
	@$(IN) core-2.19 -- python -m pytest tests/live -m "not slow" $(ARGS)

test-node: tree ## Tests on a real node: kubelet, containerd, runc, in namespaces of their own (needs root, podman, mmdebstrap)
	@$(PY) tests/tools/check.py node

test-boot: tree ## Tests of load balancers and of machines that boot, on real services in namespaces of their own (needs what test-node does)
	@$(PY) tests/tools/check.py boot

test-cluster: tree ## Machines become clusters by kubeadm and by K3s, on real machines in namespaces of their own (needs what test-node does)
	@$(PY) tests/tools/check.py cluster

test-openshift: tree ## Tests on OpenShift, with a stand-in for its install tool, on a real control plane, and of machines with empty disks
	@$(PY) tests/tools/check.py openshift

lint: tree ## ruff, codespell, mypy, layers, ansible-lint, changelog, ansible-test sanity
	@$(PY) tests/tools/check.py lint

bench: tree ## One table: requests, CPU and wall time beside kubernetes.core in the same run
	@$(IN) core-2.19 -- python tests/bench/bench.py

soak: tree ## Parts that take up to an hour each: all that have no result which holds, or PART=name; results are kept in the cache
	@$(PY) tests/tools/soak.py $(if $(PART),"$(PART)")

soak-table: tree ## Results of make soak: part, commit, date, what was measured, and whether it still holds
	@$(PY) tests/tools/soak.py --table

soak-record: tree ## Results of make soak, also those of other caches, into the checkout: docs/soak.md
	@$(PY) tests/tools/soak.py --record

tree: ## Copy the checkout to .build/ansible_collections/hwaccel/gpu (only what changed)
	@$(PY) tests/tools/tree.py

docs: tree ## Generate the role pages from the argument specs, the page of rights and the one about upstream from their tables
	@$(IN) demo -- python tests/tools/role_pages.py --write "$(CURDIR)"
	@$(IN) demo -- python tests/tools/rights_page.py --write "$(CURDIR)/docs/rights.md"
	@$(IN) core-2.19 -- python -m ansible_collections.hwaccel.gpu.tests.upstream.upstream "$(CURDIR)" --page

upstream: tree ## Compare the manifests of other projects with ours again (TREES="gpu-operator=/path ..." reads theirs as well)
	@$(IN) core-2.19 -- python -m ansible_collections.hwaccel.gpu.tests.upstream.upstream "$(CURDIR)" $(TREES)

costs: ## What the last `make test` measured becomes the budget of each job, in docs/contributing.md
	@$(PY) tests/tools/costs.py

dist: tree ## Build the collection's tarball into dist (REPOSITORY=URL, without which Galaxy refuses it)
	@$(IN) demo -- python tests/tools/dist.py "$(CURDIR)/dist" $(if $(REPOSITORY),--repository "$(REPOSITORY)")

fresh: ## make demo and make test in a new minimal Debian root with only Python and Make (needs root and apt, which brings mmdebstrap)
	@tests/tools/fresh_machine

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
