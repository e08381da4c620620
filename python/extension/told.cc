// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The wrappers that hooks put around computations, compiled: the module perseus._told.
// python/perseus/hooks/told.py says what they do, and does the same in Python
// (docs/adr/README.md). In Python's stable ABI: one file for each CPython
// from 3.9.
//
// No error of our own leaves this file: what is wrong is left to `careful`, which is Python, or
// ignored. Errors of what is wrapped pass through.

#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace {

constexpr long kVersion = 1;  // As in python/perseus/extension.py.
constexpr int kForward = 0;   // PERSEUS_FORWARD

// perseus_instruction_begin() or perseus_instruction_end(), which never wait.
using Tell = void (*)(void* client, int type, std::int32_t stage, std::int32_t microbatch);

struct Teller {
  PyObject base;
  PyObject* owner;  // Keeps the client alive.
  PyObject*
      loss;  // Stage and microbatch of the forward that waits for its loss; null or None: none.
  void* client;
  Tell begin;
  Tell end;
  char plain;  // Computations are to be told, and no more is to be done.
};

// Of both types of wrappers.
struct Told {
  PyObject base;
  PyObject* teller;  // A Teller.
  PyObject* original;
  PyObject* careful;
  PyObject* full_backward;  // The name of that argument; null for a loss, as the rest.
  Py_ssize_t most_args;
  int stage;
  int whole;
  int half;
  int has_loss;
};

Teller* TellerOf(PyObject* self) { return reinterpret_cast<Teller*>(self); }
Told* ToldOf(PyObject* self) { return reinterpret_cast<Told*>(self); }

// False: no number. What is too large for C is cut, as ctypes does.
bool Read(PyObject* number, std::int32_t* word) {
  const long value = PyLong_AsLong(number);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  *word = static_cast<std::int32_t>(value);
  return true;
}

PyObject* TellWords(Teller* teller, PyObject* words, Tell tell) {
  std::int32_t type = 0;
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  if (PyTuple_Size(words) == 3 && Read(PyTuple_GetItem(words, 0), &type) &&
      Read(PyTuple_GetItem(words, 1), &stage) && Read(PyTuple_GetItem(words, 2), &microbatch)) {
    tell(teller->client, type, stage, microbatch);
  }
  Py_RETURN_NONE;
}

PyObject* TellBegin(PyObject* self, PyObject* words) {
  return TellWords(TellerOf(self), words, TellerOf(self)->begin);
}

PyObject* TellEnd(PyObject* self, PyObject* words) {
  return TellWords(TellerOf(self), words, TellerOf(self)->end);
}

bool Waits(const Teller* teller) { return teller->loss != nullptr && teller->loss != Py_None; }

void SetLoss(Teller* teller, PyObject* loss) {
  PyObject* const before = teller->loss;
  teller->loss = loss;
  Py_XDECREF(before);
}

// False: it cannot be said.
bool IsHalf(const Told* told, PyObject* kwargs, bool* half) {
  *half = false;
  if (kwargs == nullptr) return true;
  PyObject* const full = PyDict_GetItemWithError(kwargs, told->full_backward);
  const int is_full = full == nullptr ? 1 : PyObject_IsTrue(full);
  if (is_full < 0 || PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  *half = is_full == 0;
  return true;
}

PyObject* CallComputation(const Told* told, PyObject* args, PyObject* kwargs) {
  Teller* const teller = TellerOf(told->teller);
  const Py_ssize_t count = PyTuple_Size(args);
  std::int32_t microbatch = -1;
  bool half = false;
  if (teller->plain == 0 || Waits(teller) || count < 1 || count > told->most_args ||
      !IsHalf(told, kwargs, &half) || !Read(PyTuple_GetItem(args, 0), &microbatch)) {
    return PyObject_Call(told->careful, args, kwargs);
  }
  const int type = half ? told->half : told->whole;
  teller->begin(teller->client, type, told->stage, microbatch);
  PyObject* const result = PyObject_Call(told->original, args, kwargs);
  if (result == nullptr) return nullptr;
  if (told->has_loss != 0) {
    SetLoss(teller, Py_BuildValue("(ii)", told->stage, microbatch));
    if (teller->loss != nullptr) return result;
    PyErr_Clear();  // No memory: then it ends before its loss.
  }
  if (teller->plain != 0) teller->end(teller->client, type, told->stage, microbatch);
  return result;
}

PyObject* CallLoss(const Told* told, PyObject* args, PyObject* kwargs) {
  Teller* const teller = TellerOf(told->teller);
  PyObject* const result = PyObject_Call(told->original, args, kwargs);
  if (result == nullptr || !Waits(teller)) return result;
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  if (teller->plain != 0 && PyTuple_Check(teller->loss) && PyTuple_Size(teller->loss) == 2 &&
      Read(PyTuple_GetItem(teller->loss, 0), &stage) &&
      Read(PyTuple_GetItem(teller->loss, 1), &microbatch)) {
    SetLoss(teller, nullptr);
    teller->end(teller->client, kForward, stage, microbatch);
    return result;
  }
  PyObject* const done = PyObject_CallObject(told->careful, nullptr);
  if (done == nullptr) {  // Interrupted: all else it catches itself.
    Py_DECREF(result);
    return nullptr;
  }
  Py_DECREF(done);
  return result;
}

template <auto kCall>
PyObject* Call(PyObject* self, PyObject* args, PyObject* kwargs) {
  Told* const told = ToldOf(self);
  if (told->teller == nullptr || told->original == nullptr || told->careful == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "what is wrapped was thrown away");
    return nullptr;
  }
  Py_INCREF(self);  // The wrapped function may take its wrapper off.
  PyObject* const result = kCall(told, args, kwargs);
  Py_DECREF(self);
  return result;
}

// Teller(owner, client, begin, end): addresses.
PyObject* NewTeller(PyTypeObject* type, PyObject* args, PyObject* /*kwargs*/) {
  PyObject* owner = nullptr;
  std::array<unsigned long long, 3> addresses = {};
  if (PyArg_ParseTuple(args, "OKKK:Teller", &owner, &addresses[0], &addresses[1], &addresses[2]) ==
      0) {
    return nullptr;
  }
  if (addresses[1] == 0 || addresses[2] == 0) {
    PyErr_SetString(PyExc_ValueError, "Teller: begin and end are addresses of functions, not 0");
    return nullptr;
  }
  PyObject* const self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  Py_INCREF(owner);
  TellerOf(self)->owner = owner;
  TellerOf(self)->client = reinterpret_cast<void*>(addresses[0]);
  TellerOf(self)->begin = reinterpret_cast<Tell>(addresses[1]);
  TellerOf(self)->end = reinterpret_cast<Tell>(addresses[2]);
  return self;
}

int VisitTeller(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(TellerOf(self)->owner);
  Py_VISIT(TellerOf(self)->loss);
  return 0;
}

// The owner stays until the end: whoever still calls this tells its client.
int ClearTeller(PyObject* self) {
  Py_CLEAR(TellerOf(self)->loss);
  return 0;
}

void FreeTeller(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(TellerOf(self)->loss);
  Py_CLEAR(TellerOf(self)->owner);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

// A Teller, or an error is set.
bool IsTeller(PyObject* object) {
  if (PyType_GetSlot(Py_TYPE(object), Py_tp_new) == reinterpret_cast<void*>(NewTeller)) return true;
  PyErr_SetString(PyExc_TypeError, "expected a Teller of perseus._told");
  return false;
}

void Keep(PyObject* object, PyObject** to) {
  Py_INCREF(object);
  *to = object;
}

// computation(teller, original, careful, stage, whole, half, most_args, has_loss)
PyObject* NewComputation(PyTypeObject* type, PyObject* args, PyObject* /*kwargs*/) {
  Told read = {};
  if (PyArg_ParseTuple(args, "OOOiiinp:computation", &read.teller, &read.original, &read.careful,
                       &read.stage, &read.whole, &read.half, &read.most_args,
                       &read.has_loss) == 0 ||
      !IsTeller(read.teller)) {
    return nullptr;
  }
  PyObject* const name = PyUnicode_InternFromString("full_backward");
  PyObject* const self = name == nullptr ? nullptr : PyType_GenericAlloc(type, 0);
  if (self == nullptr) {
    Py_XDECREF(name);
    return nullptr;
  }
  Told* const told = ToldOf(self);
  told->full_backward = name;
  Keep(read.teller, &told->teller);
  Keep(read.original, &told->original);
  Keep(read.careful, &told->careful);
  told->most_args = read.most_args;
  told->stage = read.stage;
  told->whole = read.whole;
  told->half = read.half;
  told->has_loss = read.has_loss;
  return self;
}

// loss(teller, original, careful)
PyObject* NewLoss(PyTypeObject* type, PyObject* args, PyObject* /*kwargs*/) {
  Told read = {};
  if (PyArg_ParseTuple(args, "OOO:loss", &read.teller, &read.original, &read.careful) == 0 ||
      !IsTeller(read.teller)) {
    return nullptr;
  }
  PyObject* const self = PyType_GenericAlloc(type, 0);
  if (self == nullptr) return nullptr;
  Keep(read.teller, &ToldOf(self)->teller);
  Keep(read.original, &ToldOf(self)->original);
  Keep(read.careful, &ToldOf(self)->careful);
  return self;
}

int VisitTold(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(ToldOf(self)->teller);
  Py_VISIT(ToldOf(self)->original);
  Py_VISIT(ToldOf(self)->careful);
  return 0;
}

int ClearTold(PyObject* self) {
  Py_CLEAR(ToldOf(self)->teller);
  Py_CLEAR(ToldOf(self)->original);
  Py_CLEAR(ToldOf(self)->careful);
  return 0;
}

void FreeTold(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  ClearTold(self);
  Py_CLEAR(ToldOf(self)->full_backward);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

std::array<PyMethodDef, 3> teller_methods = {{
    {"begin", TellBegin, METH_VARARGS, "Say that a computation begins: kind, stage, microbatch."},
    {"end", TellEnd, METH_VARARGS, "Say that it ended."},
    {nullptr, nullptr, 0, nullptr},
}};

std::array<PyMemberDef, 3> teller_members = {{
    {"plain", T_BOOL, offsetof(Teller, plain), 0, nullptr},
    {"loss", T_OBJECT, offsetof(Teller, loss), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
}};

template <typename Function>
PyType_Slot SlotOf(int slot, Function* function) {
  return {slot, reinterpret_cast<void*>(function)};
}

// Adds a type to the module; false: an error is set.
bool AddType(PyObject* module, const char* name, PyType_Spec spec) {
  PyObject* const type = PyType_FromSpec(&spec);
  if (type == nullptr) return false;
  if (PyModule_AddObject(module, name, type) == 0) return true;
  Py_DECREF(type);
  return false;
}

bool AddTold(PyObject* module, const char* name, const char* full_name, newfunc make,
             ternaryfunc call) {
  std::array<PyType_Slot, 6> slots = {{SlotOf(Py_tp_new, make),
                                       SlotOf(Py_tp_call, call),
                                       SlotOf(Py_tp_traverse, VisitTold),
                                       SlotOf(Py_tp_clear, ClearTold),
                                       SlotOf(Py_tp_dealloc, FreeTold),
                                       {0, nullptr}}};
  return AddType(
      module, name,
      {full_name, sizeof(Told), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots.data()});
}

int Fill(PyObject* module) {
  std::array<PyType_Slot, 7> slots = {{SlotOf(Py_tp_new, NewTeller),
                                       SlotOf(Py_tp_traverse, VisitTeller),
                                       SlotOf(Py_tp_clear, ClearTeller),
                                       SlotOf(Py_tp_dealloc, FreeTeller),
                                       {Py_tp_methods, teller_methods.data()},
                                       {Py_tp_members, teller_members.data()},
                                       {0, nullptr}}};
  const bool good = AddType(module, "Teller",
                            {"perseus._told.Teller", sizeof(Teller), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots.data()}) &&
                    AddTold(module, "computation", "perseus._told.computation", NewComputation,
                            Call<CallComputation>) &&
                    AddTold(module, "loss", "perseus._told.loss", NewLoss, Call<CallLoss>) &&
                    PyModule_AddIntConstant(module, "VERSION", kVersion) == 0;
  return good ? 0 : -1;
}

std::array<PyModuleDef_Slot, 2> module_slots = {
    {{Py_mod_exec, reinterpret_cast<void*>(Fill)}, {0, nullptr}}};

PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                 "perseus._told",
                                 "The wrappers of perseus.hooks.told, compiled.",
                                 0,
                                 nullptr,
                                 module_slots.data(),
                                 nullptr,
                                 nullptr,
                                 nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__told();
PyMODINIT_FUNC PyInit__told() { return PyModuleDef_Init(&module_definition); }
